"""Are two answers plainly equal? As functions of their letters, of numbers, roots, π, e and i.

    same("x^2-1", "(x-1)(x+1)")                   True
    same("\\frac{\\sqrt{3}}{2}", "\\sqrt{12}/4")    True
    same("\\frac{2\\pi}{12}", "\\pi/6")             True
    same("\\text{even}", "\\text{even}")          False: they are not read

An answer is computed in the field of P² elements. There every prime has a square root and so has −1, letters, π and e
stand for elements drawn for them, and whatever is equal stays equal. What is not equal meets in the same element with a
chance of its degree in 1e38 (Schwartz and Zippel). What is not read is left to math-verify.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any

from .quick_value import UNREAD, Reader, UnreadError, read_values

P = 2**127 - 1
"""A prime that leaves 3 when divided by 4: so −1 has no root modulo P, and a² + b² is 0 for a = b = 0 only."""
LARGEST_ROOT = 10**6
"""Of whose numbers factors are looked for."""


def same(given: str, wanted: str) -> bool:
    """Whether answers are equal."""
    try:
        a, b = (read_values(answer, ExactReader) for answer in (given, wanted))
    except UNREAD:
        return False
    return len(a) == len(b) == 1 and a == b


@dataclass(frozen=True, slots=True)
class Residue:
    """a + bi modulo P."""

    a: int
    b: int = 0

    def __add__(self, other: "Residue") -> "Residue":
        return Residue((self.a + other.a) % P, (self.b + other.b) % P)

    def __sub__(self, other: "Residue") -> "Residue":
        return Residue((self.a - other.a) % P, (self.b - other.b) % P)

    def __neg__(self) -> "Residue":
        return Residue(-self.a % P, -self.b % P)

    def __mul__(self, other: "Residue") -> "Residue":
        return Residue((self.a * other.a - self.b * other.b) % P, (self.a * other.b + self.b * other.a) % P)

    def __truediv__(self, other: "Residue") -> "Residue":
        square = (other.a**2 + other.b**2) % P
        if not square:
            raise ZeroDivisionError
        return self * Residue(other.a, -other.b % P) * Residue(pow(square, -1, P))

    def __pow__(self, exponent: int) -> "Residue":
        base, out = (self, ONE) if exponent >= 0 else (ONE / self, ONE)
        for bit in f"{abs(exponent):b}":
            out = out * out * base if bit == "1" else out * out
        return out


ONE = Residue(1)


@cache
def root_of_prime(prime: int) -> Residue:
    """One of its two roots: of itself, or of i² times its negative. Any choice keeps what is equal equal."""
    for unit, number in ((Residue(1), prime), (Residue(0, 1), P - prime)):
        root = pow(number, (P + 1) // 4, P)
        if root * root % P == number:
            return unit * Residue(root)
    raise AssertionError


def root(number: int) -> Residue:
    """Of a whole number from 0 to LARGEST_ROOT, by the roots of its prime factors."""
    out, factor = ONE, 2
    while factor * factor <= number:
        while number % factor == 0:
            out, number = out * root_of_prime(factor), number // factor
        factor += 1
    return out * (root_of_prime(number) if number > 1 else Residue(number))


class ExactReader(Reader):
    """Values as residues; exponents and what stands under a root are whole numbers as written."""

    def number(self, token: str) -> Any:
        whole, _, part = token.partition(".")
        return Residue(int(whole + part) % P) / Residue(10) ** len(part)

    def variable(self, name: str) -> Any:
        """The element drawn for it."""
        if name == "i":
            return Residue(0, 1)
        return Residue(int.from_bytes(blake2b(name.encode(), digest_size=24).digest(), "big") % P)

    def pi(self) -> Any:
        return self.variable("\\pi")

    def bounded(self, value: Any) -> Any:
        return value

    def exponent(self) -> Any:
        if self.peek() != "{":
            return self.whole()
        self.take("{")
        sign = -1 if self.peek() == "-" and self.take() else 1
        value = sign * self.whole()
        self.take("}")
        return value

    def root(self) -> Any:
        self.take("{")
        value = root(self.whole())
        self.take("}")
        return value

    def whole(self) -> int:
        token = self.take()
        if not token.isdigit() or int(token) > LARGEST_ROOT:
            raise UnreadError
        return int(token)
