"""Numbers with a base, such as 2516_8: equal if their values are, or if one is written without the base."""

import re
from typing import NamedTuple

_NAMES = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
)
_BASED = re.compile(
    r"(-?)\(?([0-9a-zA-Z](?:[0-9a-zA-Z, ]*[0-9a-zA-Z])?)\)?\s*_\s*\{?\s*(?:\\text\s*\{\s*)?(\d{1,2}|[a-z]+)\s*\}*"
)
_ASKED = re.compile(r"\bbase[\s$-]*(\d{1,2}|[a-z]+)|\b(binary|octal|hexadecimal)\b", re.IGNORECASE)
_CALLED = {"binary": 2, "octal": 8, "hexadecimal": 16}


class Based(NamedTuple):
    """Digits, and the base that they are written in."""

    digits: str
    base: int

    @property
    def value(self) -> int | None:
        """Value, or None if a digit is none of the base."""
        try:
            return int(self.digits, self.base)
        except ValueError:
            return None


def based(text: str) -> Based | None:
    """Return a number that is written with its base."""
    found = _BASED.fullmatch(text)
    if not found or not re.search(r"\d", found[2]):
        return None
    base = _base(found[3])
    return Based(found[1] + re.sub("[, ]", "", found[2]).lower(), base) if base else None


def same_based(given: str, wanted: str, question: str = "") -> bool | None:
    """Return whether two numbers are equal of which at least one has its base; None if none has one.

    A truth with a base is also right without it. Otherwise the bases must be the same, or the one that the question
    asks for; without a question, equal values are enough.
    """
    a, b = based(given), based(wanted)
    if a is None and b is None:
        return None
    if a and b:
        return a.value is not None and a.value == b.value and (a.base == b.base or not question)
    one = a or b
    assert one
    digits = re.sub(r"[,\s{}]|\\!", "", wanted if a else given).lower()
    if not re.fullmatch(r"-?[0-9a-z]+", digits):
        return None
    as_written = digits == one.digits and one.value is not None
    if b:
        return as_written
    by_value = not question and digits.lstrip("-").isdigit() and one.value == int(digits)
    return by_value or (as_written and one.base in _asked(question))


def _asked(question: str) -> set[int]:
    """Return the bases that a question names."""
    return {_CALLED.get((x[2] or "").lower()) or _base(x[1] or "") for x in _ASKED.finditer(question)}


def _base(name: str) -> int:
    """Return a base between 2 and 36, by its digits or name; 0 for none."""
    value = int(name) if name.isdigit() else _NAMES.index(name) + 2 if name in _NAMES else 0
    return value if 2 <= value <= 36 else 0
