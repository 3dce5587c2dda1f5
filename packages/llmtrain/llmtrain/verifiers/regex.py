"""Check for a match of a regular expression, the ground truth, in the response."""

import re
import warnings
from functools import lru_cache
from typing import Any

from .verdict import Verdict

_LITERAL = re.compile(r"[rR](['\"]).*\1", re.DOTALL)
_DELIMITED = re.compile(r"/[^/]+/[gimsuyx]+")
_CONDITIONS = re.compile(r"\(\?<?[=!]|(?<!\\)[$^]|\\[AZbB]")
"""Parts of a pattern that can refuse a text without taking a character of it."""


def check(response: str, ground_truth: Any) -> Verdict:
    """Return the verdict on `response`, with the match as its extracted part.

    A pattern may backtrack forever, so run this in a CheckPool.

    Raises:
        ValueError: for a ground truth that is no regular expression, or one that does not mean what it says.
    """
    if not isinstance(ground_truth, str):
        raise ValueError(f"the ground truth of regex is a pattern, not {type(ground_truth).__name__}")
    found = _pattern(ground_truth).search(response)
    return Verdict(True, "matched", found[0]) if found else Verdict(False, "no match")


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    """Return a compiled pattern. Raises ValueError for one that is broken, is in another notation or fits any text."""
    try:
        with warnings.catch_warnings(action="error", category=FutureWarning):  # [[:digit:]] is no class here
            pattern = re.compile(text)
    except (re.error, FutureWarning, RecursionError, OverflowError) as error:
        raise ValueError(f"the ground truth of regex is a pattern: {error}") from None
    if _LITERAL.fullmatch(text):
        raise ValueError("the ground truth of regex is a pattern: leave out r and the quotation marks around it")
    if _DELIMITED.fullmatch(text):
        raise ValueError("the ground truth of regex is a pattern without slashes; flags stand in front, as in (?i)")
    if any(sign in text for sign in "\b\f"):
        raise ValueError(r"the ground truth of regex has a control character: \b and \f in JSON are \\b and \\f")
    if not _CONDITIONS.search(text) and pattern.search(""):
        raise ValueError(f"the pattern {text:.60} fits every response, also an empty one: name what must be there")
    return pattern
