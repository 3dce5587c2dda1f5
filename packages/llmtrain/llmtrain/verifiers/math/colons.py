"""Times and ratios, which are both written with a colon.

10:30    a time: it is not in lowest terms as a ratio, so only 10:30 equals it
3 PM     a time: 15:00 and 3:00 p.m. equal it
3:2      a ratio: 6:4 and 3 to 2 equal it; a time, if the question asks at what time
5        a number: 5:1 does not equal it
"""

import re
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from ..asked import stands_in
from .answer_words import STYLE
from .plain_number import form, number

_WORDS = re.compile(STYLE + r"\{([^{}]*)\}")
_NAMED = re.compile(r"\s*[a-zA-Z](?:\s*:\s*[a-zA-Z])*\s*=")
"""Names before a value, as in "t = 10:30" and "a:b = 2:3"."""
_TO = re.compile(r"\\colon(?![a-zA-Z])|\{\s*:\s*\}|(?<=[\d}])\s*\bto\b\s*(?=[\d\\])")
_TIME = re.compile(r"(\d{1,2})(?::(\d\d))?(?::(\d\d))?\s*(?:(o'?clock)|([ap])\.?\s?m\.?)?", re.IGNORECASE)
_OF_TIME = re.compile(r"\b(?:time|clock|o'clock|hours?|minutes?|seconds?|[ap]\.?m)\b", re.IGNORECASE)
_OF_RATIO = re.compile(r"\b(?:ratios?|proportions?|odds)\b", re.IGNORECASE)
_SETS = re.compile(r"\\[{|]|[=<>|]")


class _Time(NamedTuple):
    seconds: int
    """Seconds since midnight, or since the last time that a dial shows 0:00."""
    full: bool
    """True if it says which half of the day it is."""


def same_colon(given: str, wanted: str, question: str = "") -> bool | None:
    """Return whether tidy answers are the same time or ratio; None unless one of them is a time or has a colon.

    A ratio that stands in the question is not worked out, unless it is written as the truth is.
    """
    given, wanted = _plain(given), _plain(wanted)
    time = _time(wanted)
    if time and _is_time(wanted, question):
        other = _time(given)
        return (
            other is not None and other.seconds == time.seconds and (time.full or not other.full or ":" not in wanted)
        )
    if ":" not in given + wanted or _SETS.search(given + wanted):
        return None
    a, b = _terms(given), _terms(wanted)
    if b and a:
        if len(b) == 1:
            shortest = form(wanted) == "fraction" and all(x.denominator == 1 for x in a) and gcd(*map(int, a)) == 1
            return len(a) == 2 and shortest and a[0] == b[0] * a[1]
        if len(a) == 1:
            return None if len(b) == 2 else False
        same = len(a) == len(b) and all(x * b[0] == y * a[0] for x, y in zip(a, b, strict=True))
        return same and (a == b or not stands_in(given, question))
    return None


def pairs(given: str, wanted: str) -> list[tuple[str, str]] | None:
    """Return ratios of two terms that are all equal if two ratios of more terms are; None if neither has more.

    The list holds one pair of unequal numbers if only one of them has that many terms.
    """
    if _SETS.search(given + wanted) or "," in given + wanted:
        return None
    a, b = (_plain(text).split(":") for text in (given, wanted))
    if max(len(a), len(b)) < 3:
        return None
    if len(a) != len(b):
        return [("0", "1")]
    return [(f"{a[0]}:{x}", f"{b[0]}:{y}") for x, y in zip(a[1:], b[1:], strict=True)]


def _plain(text: str) -> str:
    """Return `text` without styles and a name before it, and with colons for "to"."""
    text = _TO.sub(":", _NAMED.sub("", _WORDS.sub(r" \1", text)))
    return re.sub(r"\s*:\s*", ":", " ".join(text.split()))


def _terms(text: str) -> list[Fraction]:
    """Return the terms of a ratio of plain numbers that are not zero, the number itself of one; none for others."""
    found = [number(part) for part in text.split(":")]
    return [x for x in found if x] if all(found) and "%" not in text else []


def _time(text: str) -> _Time | None:
    """Return the time that `text` tells."""
    found = _TIME.fullmatch(text)
    if not found or not (found[2] or found[4] or found[5]):
        return None
    hour, minute, second = (int(part or 0) for part in found.group(1, 2, 3))
    half = (found[5] or "").lower()
    if minute > 59 or second > 59 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return _Time(3600 * hour + 60 * minute + second, bool(half) or hour == 0 or hour > 12)


def _is_time(text: str, question: str) -> bool:
    """Return whether the time that `text` may tell is no ratio in lowest terms, or answers a question about time."""
    parts = text.split(":")
    if not all(part.isdigit() for part in parts) or len(parts) < 2:  # it says AM or PM
        return True
    if any(part[0] == "0" for part in parts) or gcd(*map(int, parts)) != 1:
        return True
    return bool(_OF_TIME.search(question)) and not _OF_RATIO.search(question)
