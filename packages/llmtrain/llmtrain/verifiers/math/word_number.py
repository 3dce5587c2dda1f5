"""Numbers with words in them that have one meaning, and words that join numbers to one statement.

6.5 million       6500000             5 dozen          60
3 out of 4        3/4                 1 over 3         1/3
5 dozen, asked how many dozen      5
3 in 4, 3 (mod 4), 3 for x = 4        no number: the words may mean a fraction, a rate or a condition
"""

import re
from fractions import Fraction
from math import prod

from .answer_words import STYLE

_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_NAMES = "|".join(_SCALES)
_SCALED = re.compile(
    rf"(?<![\d.,/_^{{\\a-zA-Z])(?<!\d\s)(?<!/\s)(\d{{1,3}}(?:,\d{{3}})+|\d{{1,30}})(\.\d{{1,30}})?"
    rf"((?:\s*(?:{_NAMES})s?(?![a-zA-Z]))+)(?!\s*(?:and\s*)?[\d\\(^/*-])",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"\b(?:how many|in)\s+(?:more\s+)?({_NAMES})s?\b(?!\s*[-\d])", re.IGNORECASE)
_SHARE = re.compile(r"(\d{1,30})\$?\s*(?:\\text\s*\{\s*)?(?:out of|over)\s*\}?\s*\$?(\d{1,30})")
_JOINED = re.compile(
    r"(?:[\d}][$)%\s*]*\b(?:of|by|to)|[\d}][$)%]*(?:[ \t]+(?!(?:is|are|was|were)\b)[a-zA-Z]+){0,2}[ \t,(]*"
    r"\b(?P<loose>out of|over|in|times|per|mod(?:ulo)?|(?:when )?divided by|at|where|when|if|for|with|maybe|perhaps"
    r"|possibly))[ \t$(]*$",
    re.IGNORECASE,
)
"""Words between two numbers that make both part of one statement."""
_LABEL = re.compile(
    r"\b(?:theorem|lemma|corollary|proposition|equations?|eqs?\.?|sections?|steps?|cases?|figure|fig\.|table|exercise"
    r"|example|line|page|chapter|property|definition)[ \t~(]*$",
    re.IGNORECASE,
)
"""Words before a number that only names something."""
_FIRST = re.compile(r"\d+\$?\s+(?:out of|over)\s+\$?$")


def _scaled(found: re.Match[str]) -> str:
    """Return the whole number that "6.5 million" stands for, or the words if it is none."""
    whole, places, words = found.groups()
    factor = prod(_SCALES[word.lower()] for word in re.findall(_NAMES, words, re.IGNORECASE))
    value = Fraction(whole.replace(",", "") + (places or "")) * factor
    return str(value.numerator) if value.denominator == 1 else found[0]


def in_digits(text: str) -> str:
    """Return a tidy answer with digits for the words of its numbers."""
    share = _SHARE.fullmatch(text)
    return f"{share[1]}/{share[2]}" if share else _SCALED.sub(_scaled, text)


def counted_as_asked(text: str, question: str) -> str:
    """Return an answer without the word of a number, such as dozen, if the question counts in it."""
    asked = _ASKED.search(question)
    return (
        re.sub(rf"(?<=\d)([\s\\]*(?:{STYLE}\{{)?\s*){asked[1]}s?\b", r"\1", text, flags=re.IGNORECASE)
        if asked
        else text
    )


def number_before(text: str) -> str | None:
    """Return the words at the end of a text that belong to the number after them: "" for none, None if it is no answer.

    "3 out of " goes with 4. After "3, at ", "3 (mod " and "Theorem " no number is an answer.
    """
    if _LABEL.search(text):
        return None
    if not _JOINED.search(text):
        return ""
    first = _FIRST.search(text)
    return first[0] if first else None
