"""Lists that go on, such as 1, 2, 3, \\ldots: compared by what is written of them."""

import re
from itertools import zip_longest

from .answer_text import compact

ELLIPSIS = re.compile(r"\\(?:ldots|dots|cdots|dotsc|dotsb)(?![a-zA-Z])|\.\.\.|…")
_SEPARATOR = re.compile(r"[,;:+]")
FEWEST = 2
"""Members that two lists must share before the ellipsis."""


def same_sequence(given: str, wanted: str) -> bool | None:
    """Return whether lists with an ellipsis agree in all members that both write; None if neither has one.

    A list that ends is not one that goes on.
    """
    a, b = (ELLIPSIS.split(text) for text in (given, wanted))
    if len(a) == len(b) == 1:
        return None
    if len(a) != 2 or len(b) != 2:
        return compact(given) == compact(wanted)
    (before_a, after_a), (before_b, after_b) = map(_members, a), map(_members, b)
    shared = min(len(before_a), len(before_b))
    if _SEPARATOR.findall(a[0])[:1] != _SEPARATOR.findall(b[0])[:1] or shared < FEWEST:
        return compact(given) == compact(wanted)
    return before_a[:shared] == before_b[:shared] and all(x == y for x, y in zip_longest(after_a, after_b))


def _members(text: str) -> list[str]:
    return [part for part in (compact(part.strip()) for part in _SEPARATOR.split(text)) if part]
