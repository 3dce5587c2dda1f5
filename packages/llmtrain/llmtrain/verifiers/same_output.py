"""Equality of what a program gives and what its tests expect, by what the expected side shows.

    expected 0.333333    a decimal, with a point or an exponent: within 1e-6, absolute or relative
    expected 3           a whole number: equal in value, so 3.0 is right and 3.0000001 is not
    expected 007, YES    anything else: equal as text

1e-6, absolute or relative, is what testlib's and AtCoder's checkers use. Runs in the sandbox beside the tests; uses the
standard library only.
"""

import re
from decimal import Decimal
from typing import Any

CLOSE = "1e-6"
"""Upper limit for the difference of two decimals, and of its share in the expected one."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.ASCII | re.IGNORECASE)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
PADDED = re.compile(r"[+-]?0\d+", re.ASCII)
"""Digits that are text, such as a binary word: zeros in front count."""


def same_text(found: str, wanted: str) -> bool:
    """Return True if two outputs have the same words, up to white space between them."""
    words, expected = found.split(), wanted.split()
    return len(words) == len(expected) and all(map(_same_word, words, expected))


def _same_word(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    if not NUMBER.fullmatch(found) or not NUMBER.fullmatch(wanted) or PADDED.fullmatch(wanted):
        return False
    value, expected = Decimal(found), Decimal(wanted)
    return value == expected or (not WHOLE.fullmatch(wanted) and _close(value, expected, Decimal(CLOSE)))


def same_value(found: Any, wanted: Any) -> bool:
    """Return True if two values of JSON are equal; floats as decimals in a text are."""
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(same_value, found, wanted))
    if isinstance(wanted, dict):
        same_keys = isinstance(found, dict) and found.keys() == wanted.keys()
        return same_keys and all(same_value(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, float):
        number = isinstance(found, int | float) and not isinstance(found, bool)
        return number and (found == wanted or _close(found, wanted, float(CLOSE)))
    return bool(found == wanted)


def _close(found: Any, wanted: Any, limit: Any) -> bool:
    return bool(abs(found - wanted) <= limit * max(1, abs(wanted)) < float("inf"))
