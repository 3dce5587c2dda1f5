"""Values of answers: numbers of 100 digits for trees, with a number in place of each letter."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import mpmath

from .answer_tokens import UnreadError
from .answer_tree import Tree

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 100

Number = Any
"""Of CONTEXT: mpf, or mpc where there is an imaginary part."""

LARGEST = CONTEXT.mpf("1e100000")
LARGEST_ARGUMENT, SMALLEST_ARGUMENT = CONTEXT.mpf("1e20"), CONTEXT.mpf("1e-20")
"""Of functions and exponents: beyond, what differs might have values that do not."""
ABSORBED = CONTEXT.mpf("1e-30")
"""A share that is added to something so much larger would leave the digits that are compared."""
CANCELLED = CONTEXT.mpf("1e-80")
"""What is left of two addends that cancel: zero but for rounding."""
VANISHED = CONTEXT.mpf("1e-40")
"""What is left of a function where it is zero: the root of a rounding error at most."""
NEAR = 1e-6
"""Numbers that differ by less than this, or this share, may be meant to be equal: math-verify rounds at 1e-6."""
NEAR_SHARE = 1e-3
"""Numbers that differ by a larger share are not, however small they are."""
LOGS = (+CONTEXT.e, CONTEXT.mpf(10))
"""What \\log may have as its base."""


def far(x: Number, y: Number) -> bool:
    """Whether numbers differ by more than what rounding may do."""
    share = max(abs(x), abs(y))
    if CONTEXT.isinf(share):
        return bool(x != y)
    return bool(abs(x - y) > max(NEAR * share, min(2 * NEAR, NEAR_SHARE * share)))


class Values:
    """Values of expressions at one point.

    Args:
        low: Letters are numbers from `low` to `low` + 1, drawn by their names.
        log: Base of \\log without one.
        branches: Whether roots, logarithms and the like of expressions with letters have their values. If not, they
            have numbers drawn for them, equal for equal operands: \\sqrt{x^2} is x on one side of 0 only.
    """

    def __init__(self, low: float = 1.0, log: Number = LOGS[0], branches: bool = True) -> None:
        self.low = CONTEXT.mpf(low)
        self.log = log
        self.branches = branches

    def __call__(self, tree: Tree) -> Number:
        """The value of an expression or an infinite end.

        Raises:
            UnreadError: where there is no value, or none that is sure.
        """
        operation, *operands = tree
        match operation:
            case "infinity":
                return CONTEXT.mpf(f"{operands[0]}inf")
            case "number":
                return CONTEXT.mpf(operands[0])
            case "letter":
                return self.letter(operands[0])
            case "pi":
                return +CONTEXT.pi
            case "apply":  # of all functions the answers might mean, the one that multiplies
                name, argument = operands[0], self(operands[1])
                return self.letter(name) * argument if self.branches else self.drawn(name, argument)
            case "call":
                name, *arguments = operands
                return self.bounded(self.call(name, arguments, [self(x) for x in arguments]))
        values = [self(x) for x in operands]
        return self.bounded(self.power(tree, *values) if operation == "^" else _ARITHMETIC[operation](*values))

    def letter(self, name: str) -> Number:
        if name in ("e", "i"):
            return +CONTEXT.e if name == "e" else CONTEXT.mpc(0, 1)
        return self.low + self.drawn(name)

    def drawn(self, name: str, *operands: Number) -> Number:
        """A number from 0 to 1 for equal operands of the same name."""
        text = " ".join([name, *(CONTEXT.nstr(x, 50) for x in operands)])
        return CONTEXT.mpf(int.from_bytes(blake2b(text.encode(), digest_size=32).digest(), "big")) / 2**256

    def bounded(self, value: Number) -> Number:
        if not abs(value) < LARGEST:
            raise UnreadError
        return value

    def power(self, tree: Tree, base: Number, exponent: Number) -> Number:
        whole = exponent == int(CONTEXT.re(exponent)) if abs(exponent) < LARGEST_ARGUMENT else False
        if not whole and (not _positive(base) or abs(exponent) < SMALLEST_ARGUMENT):
            raise UnreadError
        if base == 0 and exponent == 0:
            raise UnreadError
        if base and abs(exponent * CONTEXT.log(abs(base))) > 1e5:
            raise UnreadError
        if not self.branches and not whole and has_letters(tree[1]):
            return self.drawn("^", base, exponent)
        return base ** (int(CONTEXT.re(exponent)) if whole else exponent)

    def call(self, name: str, trees: list[Tree], values: list[Number]) -> Number:
        x = values[-1]
        if any(y and not SMALLEST_ARGUMENT <= abs(y) <= LARGEST_ARGUMENT for y in values) and name not in _UNBOUNDED:
            raise UnreadError
        if name in _SMOOTH:
            return self.settled(name, _SMOOTH[name](x))
        if any(CONTEXT.im(y) for y in values):
            raise UnreadError
        if not self.branches and any(map(has_letters, trees)):
            return self.drawn(name, *values)
        return self.settled(name, self.branching(name, [CONTEXT.re(y) for y in values]))

    def settled(self, name: str, value: Number) -> Number:
        """Zero where a function is zero but for rounding; there is no value where it has a pole but for rounding."""
        if name not in _CROSSING:
            return value
        if abs(value) > 1 / VANISHED:
            raise UnreadError
        return CONTEXT.mpf(0) if abs(value) < VANISHED else value

    def branching(self, name: str, values: list[Number]) -> Number:
        """Of real numbers; those with no real value are not sure, but for square roots."""
        x = values[-1]
        match name:
            case "root":
                degree = values[0]
                if (x < 0 and degree != 2) or not 0 < degree < LARGEST_ARGUMENT:
                    raise UnreadError
                return CONTEXT.sqrt(x) if degree == 2 else x ** (1 / degree)
            case "ln" | "log" | "lg" | "log of base":
                base: Number = {"ln": CONTEXT.e, "log": self.log, "lg": CONTEXT.mpf(10)}.get(name, values[0])
                if x <= 0 or base <= 0:
                    raise UnreadError
                return CONTEXT.log(x) / CONTEXT.log(base)
            case "arcsin" | "arccos":
                if abs(x) > 1:
                    raise UnreadError
                return CONTEXT.asin(x) if name == "arcsin" else CONTEXT.acos(x)
            case "arctan":
                return CONTEXT.atan(x)
            case "abs":
                return abs(x)
            case "floor" | "ceil":
                near = CONTEXT.nint(x)
                if abs(x - near) < CANCELLED:
                    return near
                return CONTEXT.floor(x) if name == "floor" else CONTEXT.ceil(x)
            case "factorial" if -1 < x <= 1e4:
                return CONTEXT.factorial(x)
            case "binomial" if -1 < x <= 1e4 and -1 < values[0] <= 1e4:
                return CONTEXT.binomial(values[0], x)
        raise UnreadError


def _sum(x: Number, y: Number) -> Number:
    larger = max(abs(x), abs(y))
    if 0 < min(abs(x), abs(y)) < ABSORBED * larger:
        raise UnreadError
    total = x + y
    return CONTEXT.mpf(0) if abs(total) < CANCELLED * larger else total


def _positive(x: Number) -> bool:
    return CONTEXT.im(x) == 0 and CONTEXT.re(x) > 0


def has_letters(tree: Any) -> bool:
    """Whether its value depends on a point; e and i are no letters."""
    if not isinstance(tree, tuple):
        return False
    return tree[0] == "apply" or (tree[0] == "letter" and tree[1] not in ("e", "i")) or any(map(has_letters, tree[1:]))


_ARITHMETIC: dict[str, Callable[..., Number]] = {
    "+": lambda x, y: _sum(x, y),
    "-": lambda x, y: _sum(x, -y),
    "neg": lambda x: -x,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}
_SMOOTH: dict[str, Callable[[Number], Number]] = {
    name: getattr(CONTEXT, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "exp")
}
"""Functions whose values at one point tell them apart everywhere."""
_CROSSING = ("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log", "lg", "log of base", "arcsin", "arccos", "arctan")
"""Functions with zeros or poles that are no exact numbers."""
_UNBOUNDED = ("abs", "root", "ln", "log", "lg", "log of base", "floor", "ceil")
