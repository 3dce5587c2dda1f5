"""Plain numbers and fractions, compared exactly; a decimal also equals the number that it rounds to six places."""

import re
from fractions import Fraction

from ..asked import stands_in

_DIGITS = r"\d{1,3}(?:,\d{3})+|\d{1,3}(?: \d{3})+|\d{1,2000}"
_POWER = r"[eE](?P<e>[+-]?\d{1,3})|(?:\\times|\\cdot|[×·*])10\^(?:\{(?P<braced>-?\d{1,3})\}|(?P<bare>-?\d{1,3}))"
_PLAIN = re.compile(rf"(?P<digits>[+-]?(?:(?:{_DIGITS})(?:\.\d{{1,2000}})?|\.\d{{1,2000}}))(?:{_POWER})?")
_FRACTION = re.compile(r"([+-]?)\\frac\{(\d{1,2000})\}\{(\d{1,2000})\}|([+-]?)(\d{1,2000})/(\d{1,2000})")
_PERCENTAGE = re.compile(r"%|percent|\bper cent\b|\brates?\b|\binterest\b", re.IGNORECASE)
_SPACE = re.compile(r"(?<!\d) | (?!\d)")
"""Spaces, except between digits: 2 1/2 is not 21/2."""
PLACES = 6
"""Places from which on a decimal is taken for a rounded value; a shorter truth, and a whole one, is exact."""
ROUNDED, ROUNDED_SHARE = Fraction(1, 2_000_000), Fraction(1, 100_000)
"""Half of the sixth place, and the relative error allowed of a small decimal."""


def number(text: str) -> Fraction | None:
    """Return the value of a plain number or fraction, its percent sign left out; None for any other text."""
    if ("\\$" in text and "%" in text) or ", " in text:  # 35, 110 is two numbers
        return None
    text = (_SPACE.sub("", text) if " " in text else text).removeprefix("\\$").removesuffix("%").removesuffix("\\")
    if found := _PLAIN.fullmatch(text):
        value = Fraction(found["digits"].replace(",", "").replace(" ", ""))
        return value * Fraction(10) ** int(found["e"] or found["braced"] or found["bare"] or 0)
    if found := _FRACTION.fullmatch(text):
        sign, top, bottom = found.group(1, 2, 3) if found[2] else found.group(4, 5, 6)
        return Fraction(int(sign + top), int(bottom)) if int(bottom) else None
    return None


def form(text: str) -> str:
    """Return how a plain number is written: as a percentage, fraction, power of ten, decimal or whole number."""
    if text.rstrip("\\").endswith("%"):
        return "percentage"
    if _FRACTION.fullmatch(_SPACE.sub("", text)):
        return "fraction"
    return "power of ten" if re.search(r"[eE^]", text) else "decimal" if "." in text else "whole number"


def to_be_worked_out(given: str, wanted: str, question: str) -> bool:
    """Return whether a number is a quotient that comes out even, as 840/7, and the truth is none, or stands in the
    question, which asks for it in another form, as "3/20 as a decimal"."""
    if number(given) is None or number(wanted) is None:
        return False
    quotients = [_FRACTION.fullmatch(_SPACE.sub("", text.removeprefix("\\$"))) for text in (given, wanted)]
    if quotients[0] and not quotients[1] and comes_out_even(*map(int, filter(None, quotients[0].group(2, 3, 5, 6)))):
        return True
    return form(given) != form(wanted) and stands_in(given, question)


def comes_out_even(top: int, bottom: int) -> bool:
    """Return whether a fraction is a whole number that is still to be divided."""
    return top != 0 and abs(bottom) > 1 and top % bottom == 0


def same_number(given: str, wanted: str, question: str = "") -> bool | None:
    """Return whether two plain numbers are equal, 50% being 50 and 0.5; None unless both are plain numbers.

    To a question that does not speak of percentages, 50% is not 50. A percentage equals a fraction by its value
    alone: 25% is 1/4, and 1/4% is not.
    """
    a, b = number(given), number(wanted)
    if a is None or b is None:
        return None
    kinds = form(given), form(wanted)
    exact = "fraction" not in kinds and kinds[1] in ("whole number", "decimal") and len(_places(wanted)) < PLACES
    exact = exact or (kinds == ("decimal", "fraction") and 10**PLACES % b.denominator == 0)
    decimal = not exact and ("." in given or "." in wanted)
    if "%" not in given + wanted or given[-1:] == wanted[-1:]:
        return _near(a, b, decimal)
    asked = not question or "%" in wanted or _PERCENTAGE.search(question)
    fraction = any("%" not in one and _FRACTION.fullmatch(one) for one in (given, wanted))
    if asked and not fraction and _near(a, b, decimal):
        return True
    return _near(*((a / 100, b) if "%" in given else (a, b / 100)), decimal)


def _places(text: str) -> str:
    """Return the digits after the point of a decimal."""
    return text.partition(".")[2].rstrip("\\ ")


def _near(a: Fraction, b: Fraction, decimal: bool) -> bool:
    return a == b or (decimal and abs(a - b) <= min(ROUNDED, ROUNDED_SHARE * max(abs(a), abs(b))))
