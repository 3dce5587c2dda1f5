"""Are two answers plainly different? By their values, where they are made of numbers, variables and arithmetic.

    apart("\\frac{x+1}{2}", "x+1")      True: put a number in for x, and the values differ
    apart("2\\sqrt{2}", "\\sqrt{8}")     False: perhaps they are equal
    apart("\\text{even}", "2")          False: one of them is not read

A value is what an answer is for certain numbers in place of its letters: answers that are equal have equal values
whatever these are. What is not read, or might be read in two ways, is left to math-verify. Nothing is evaluated but by
the arithmetic below, and it cannot hang.
"""

import cmath
import math
import re
from typing import Any
from zlib import crc32

APART = 1e-6
"""Values that differ by more than this share of the larger are not equal (math-verify rounds at 1e-6)."""
LONGEST = 200
"""Characters of an answer that is read."""
LARGEST = 1e8
"""Of a value, and on the way to it: what large numbers leave when they cancel is not exact."""
INFINITY = 1.7e12
"""Stands for the infinite end of an interval."""

_TOKEN = re.compile(r"\d+\.\d+|\d+|\\[a-zA-Z]+|\\[{}]|[a-zA-Z]|[-+*/^_(){}\[\],]")
_DOUBTFUL = re.compile(
    r"\d,\d{3}(?!\d)|\d\s+\d|\d\s*\\frac|\^\s*\d\d|\\frac\s*\d\d\d|(?<![\\a-zA-Z])[a-zA-Z]{2}"
    r"|\d\s*[a-zA-Z]\s*\d|\d\s*(?!i)[a-zA-Z]$|[a-zA-Z]\s*\([^()]*,"
)
"""What may mean something else: thousands or two numbers, 3\\frac12, 2^10, \\frac123, words and units (5cm, 5m), 1e5,
f(x, y)."""
_GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|(var)?epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma|tau|(var)?phi|chi|psi|omega)"
)
_TIMES = ("*", "\\cdot", "\\times")
_OPENING = {"(": ")]", "[": ")]", "\\{": ("\\}",)}


class UnreadError(Exception):
    """This is not read."""


UNREAD = (UnreadError, ArithmeticError, ValueError, IndexError)
"""What reading may raise."""


def apart(given: str, wanted: str) -> bool:
    """Whether answers differ in value: a number, or any of several numbers, that the other one has not."""
    try:
        a, b = (read_values(answer, Reader) for answer in (given, wanted))
    except UNREAD:
        return False
    return any(all(_differ(x, y) for y in others) for mine, others in ((a, b), (b, a)) for x in mine)


def _differ(x: complex, y: complex) -> bool:
    return abs(x - y) > max(APART * max(abs(x), abs(y)), 2 * APART)


def read_values(answer: str, kind: type["Reader"]) -> list[Any]:
    """Values of an answer, or of each part of a list, tuple, interval or set."""
    if len(answer) > LONGEST or _DOUBTFUL.search(answer):
        raise UnreadError
    tokens = _TOKEN.findall(answer)
    if "".join(tokens) != re.sub(r"\s", "", answer):
        raise UnreadError
    if len(tokens) > 2 and tokens[-1] in _OPENING.get(tokens[0], ()) and "," in tokens:
        tokens = tokens[1:-1]
    reader = kind(tokens)
    values = [reader.part()]
    while reader.peek() == ",":
        reader.take(",")
        values.append(reader.part())
    if reader.peek():
        raise UnreadError
    return values


class Reader:
    """Recursive descent: sum := product ([+-] product)*, product := power ([*/]? power)*, power := atom (^ atom)?"""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = [*tokens, ""]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at]

    def take(self, wanted: str = "") -> str:
        token = self.tokens[self.at]
        if not token or (wanted and token != wanted):
            raise UnreadError
        self.at += 1
        return token

    def number(self, token: str) -> Any:
        return float(token)

    def variable(self, name: str) -> Any:
        """A number for it between 1 and 2; e and i are what they are."""
        known = {"e": math.e, "i": 1j}
        return known[name] if name in known else 1 + crc32(name.encode()) % 9973 / 9973

    def bounded(self, value: Any) -> Any:
        if not abs(value) < LARGEST:
            raise UnreadError
        return value

    def part(self) -> Any:
        """A sum, or an infinite end."""
        for sign in (["\\infty"], ["+", "\\infty"], ["-", "\\infty"]):
            if self.tokens[self.at : self.at + len(sign)] == sign:
                self.at += len(sign)
                return -INFINITY if sign[0] == "-" else INFINITY
        return self.sum()

    def sum(self) -> Any:
        negative = self.peek() == "-"
        if self.peek() in ("+", "-"):
            self.take()
        value = -self.product() if negative else self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return self.bounded(value)

    def product(self) -> Any:
        value, divided = self.power(), False
        while self.peek() not in ("", "+", "-", ",", ")", "]", "}", "\\}"):
            operator = self.take() if self.peek() in (*_TIMES, "/") else ""
            if divided and not operator:  # 1/2x is read in two ways
                raise UnreadError
            divided = operator == "/"
            other = self.power()
            value = self.bounded(value / other if divided else value * other)
        return value

    def power(self) -> Any:
        base = self.atom()
        if self.peek() != "^":
            return base
        self.take()
        if self.peek() not in ("{",) and not (self.peek().isalnum() and len(self.peek()) == 1):
            raise UnreadError
        exponent = self.exponent()
        if self.peek() in ("^", "_") or abs(exponent) > 100:
            raise UnreadError
        return self.bounded(base**exponent)

    def exponent(self) -> Any:
        return self.atom()

    def atom(self) -> Any:
        token = self.take()
        if token[0].isdigit():
            return self.number(token)
        if token in ("(", "{"):
            value = self.sum()
            self.take(")" if token == "(" else "}")
            return value
        if token == "\\frac":
            return self.argument() / self.argument()
        if token == "\\sqrt":
            return self.root()
        if token == "\\pi":
            return self.pi()
        if token.isalpha() or _GREEK.fullmatch(token):
            return self.letter(token)
        raise UnreadError

    def argument(self) -> Any:
        """In braces; \\frac12 has none."""
        if self.peek() == "{":
            return self.atom()
        digits = self.peek()
        if not digits.isdigit():
            raise UnreadError
        if len(digits) == 1:
            return self.number(self.take())
        self.tokens[self.at] = digits[1:]
        return self.number(digits[0])

    def root(self) -> Any:
        if self.peek() != "{":  # of a degree, or without braces
            raise UnreadError
        return cmath.sqrt(self.atom())

    def pi(self) -> Any:
        return math.pi

    def letter(self, name: str) -> Any:
        """The number for a variable with its index."""
        if self.peek() == "_":
            name += self.take() + self.take()
            if name[-1] == "{":
                name = name[:-1] + self.take()
                self.take("}")
            if not name[-1].isalnum():
                raise UnreadError
        return self.variable(name)
