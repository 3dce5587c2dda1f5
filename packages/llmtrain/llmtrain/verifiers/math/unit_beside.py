"""Units that stand beside a box, a formula or a number of a sentence, where they are as much of the answer as inside.

with_unit("5", "\\\\$", "")          \\\\$5
with_unit("5", "", " km.")         5\\\\text{ km}
with_unit("5", "", " toys a day")  5\\\\text{ per day}
with_unit("5", "", " in total")    5: "in" is an inch only at the end of a clause
"""

import re

from .answer_words import SPACING, STYLE
from .units import unit

_SET = re.compile(rf"\s*{STYLE}\{{\s*([^{{}}]+?)\s*\}}(\s*\^\s*\{{?-?\d\}}?)?")
_PLAIN = re.compile(
    r"\s*((?:(?:sq|square|cu|cubic)\.?\s+)?[a-zA-Z°¢€£]+(?:\s+per\s+[a-zA-Z]+|/[a-zA-Z]+)?)(\^\{?-?\d\}?|[²³])?"
    r"(?![a-zA-Z'’\d])(?P<end>\s*(?:[.,;:!?)]|$))?"
)
PERIODS = "second|minute|hour|day|week|month|year"
CURRENCIES = ("€", "£", "¥", "₹")
_PERCENT = re.compile(r"\s*\\?%")
NO_UNITS = frozenset(("in", "a", "A", "has", "us", "as", "I"))
"""Words of sentences that would be units."""
_END_OF_FORMULA = re.compile(r"\s*(?:\$|\\[)\]]|\*\*)?")
_NUMBER_AT_END = re.compile(r"[\d}]\s*$")
_DOLLAR = re.compile(r"\\\$\s*\$?\s*$")


_RATE = re.compile(
    rf"(?:[\s$*}}]|\\[ ,;])*(?:{STYLE}\{{)?\s*(?:[a-zA-Z]+\s+){{0,2}}?"
    rf"(?:(?:per|each|every|an?)\s+|/\s*)({PERIODS})(?![a-z])",
    re.IGNORECASE,
)
"""Period after a number that is a rate, with at most two words between, as in "120 toys per week"."""


def with_unit(answer: str, before: str, after: str) -> str:
    """Return an answer with the unit in the text around it, or the period that it is per; as it is without either."""
    found = _with_unit(answer, before, after)
    rate = _RATE.match(after[:80]) if _NUMBER_AT_END.search(answer) else None
    return f"{found}\\text{{ per {rate[1].lower()}}}" if rate and "\\text" not in found else found


def _with_unit(answer: str, before: str, after: str) -> str:
    if not _NUMBER_AT_END.search(answer):
        return answer
    if _DOLLAR.search(before):
        return f"\\${answer}"
    if (sign := before.rstrip(" $")[-1:]) in CURRENCIES:
        return sign + answer
    found = _END_OF_FORMULA.match(after[:80])
    near = SPACING.sub(" ", after[found.end() if found else 0 : 80])
    if percent := _PERCENT.match(near):
        return answer + percent[0].strip()
    set_word, word = _SET.match(near), _PLAIN.match(near)
    if set_word and unit(set_word[1]):
        return f"{answer}\\text{{ {set_word[1]}}}{(set_word[2] or '').strip()}"
    if word is None or not unit(word[1]) or ((word[1] in NO_UNITS or len(word[1]) == 1) and word["end"] is None):
        return answer
    return f"{answer}\\text{{ {word[1]}}}{word[2] or ''}"
