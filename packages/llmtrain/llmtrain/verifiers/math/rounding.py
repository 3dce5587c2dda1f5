"""Approximations and percentages at the end of a chain.

A rounded value counts if it is a decimal; after an exact value it must round that value.

\\approx 2.5, x \\approx 2.5             2.5
\\approx 6, about 6, ~6                 no answer: of a whole number it is not known what it rounds
1/6 \\approx 0.167                      1/6; 0.167 if that is the truth
1/6 \\approx 0.2, 3 \\approx 4           no answer
"""

import re
from fractions import Fraction

from sympy import Expr, Rational

from .answer_latex import symbols
from .math_reading import read
from .plain_number import number, same_number
from .relations import APPROXIMATE, is_name
from .size import require_small

_PERCENTAGE = re.compile(r"\s*(-?\d{1,40}(?:\.\d{1,40})?)\s*\\?%\s*")
_DECIMAL = re.compile(r"\s*-?\d{1,40}(?:\.(\d{1,40}))?\s*")


def exact_or_rounded(given: str, wanted: str) -> str:
    """Return which side of `given`, a value and what it is rounded to, to compare with `wanted`.

    All of it if it is anything else, or if the rounding is wrong. Both texts are readable.
    """
    left, *right = APPROXIMATE.split(given)
    rounded = _DECIMAL.fullmatch(right[0]) if len(right) == 1 else None
    if rounded is None or not left.strip() or (is_name(left) and left.strip() != "\\pi") or APPROXIMATE.search(wanted):
        return given
    value = _value(left.rpartition("=")[2])
    near = Fraction(rounded[0].strip())
    if value is None or abs(value - near) > Fraction(1, 2 * 10 ** len(rounded[1] or "")):
        return given
    is_decimal = re.search(r"\d\.\d", given) is not None
    return rounded[0].strip() if is_decimal and same_number(rounded[0].strip(), wanted) else left.strip()


def percentage(given: str) -> str:
    """Return the percentage that a chain such as 3/4 = 0.75 = 75\\% ends with, if that is right; else the chain."""
    *sides, last = given.split("=")
    found = _PERCENTAGE.fullmatch(last)
    if not sides or not found:
        return given
    percent = Fraction(found[1])
    values = [_value(side.replace("\\%", "").replace("%", "")) for side in sides if not is_name(side)]
    return last.strip() if values and all(value in (percent, percent / 100) for value in values) else given


def _value(text: str) -> Fraction | None:
    """Return the value of a number to 60 digits, or None for what is none."""
    if (plain := number(text)) is not None:
        return plain
    tree = read(symbols(text.strip()))
    if not tree or not isinstance(tree[0], Expr) or tree[0].free_symbols:
        return None
    require_small(tree[0])
    value = tree[0].evalf(60)
    return Fraction(str(Rational(value))) if value.is_Float or value.is_Rational else None
