"""Units that a question asks for: "5 minutes" is wrong if it asks how many hours, whatever the truth leaves out.

in_another_unit("5 minutes", "5", "How many hours did it take?")      True
in_another_unit("5 hours", "5", "How many hours did it take?")        False
in_another_unit("5 km", "5", "How many hours did it take?")           True
in_another_unit("5 apples", "5", "How many hours did it take?")       False: no unit
"""

import re
from functools import lru_cache

from .answer_latex import measured
from .unit_beside import NO_UNITS, PERIODS
from .units import Kind
from .units import unit as unit_of

_PHRASE = r"((?:(?:square|cubic|sq|cu)\.?\s+)?[a-zA-Z]+)(\s+per\s+[a-zA-Z]+|/[a-zA-Z]+)?(?![a-zA-Z])"
_MORE = r"(?:(?:more|fewer|total|extra|additional|full|whole)\s+)*"
_HOW_MANY = re.compile(rf"\bhow\s+many\s+{_MORE}{_PHRASE}", re.IGNORECASE)
_SYMBOL = r"[kcdm]?m|[km]?g|m[lL]|L|lbs?|ft|yd|mi|min|hr|s"
_IN = (
    r"\b(?:in(?:to)?|(?i:convert)\b[^.?!]{1,60}?\bto)\s+"
    rf"(?=(?:(?:square|cubic|sq|cu)\.?\s+)?(?:[a-zA-Z]{{3,}}s|feet|{_SYMBOL})\b){_PHRASE}(?!\s*\d)"
)
"""Unit after "in"; "in week 2" and "in second place" name none."""
_IN_UNIT = re.compile(_IN)
_REQUEST = re.compile(rf"(?i:\b(?:give|express|answer|write|state|report|provide)\b)[^.?!\n]*?{_IN}")
_SENTENCE = re.compile(r"(?:[^.?!\n]|\.(?=\S))+[.?!\n]?")
_ASKS = re.compile(
    r"\?\s*$|\b(?:find|give|express|answer|write|state|report|convert|calculate|compute|determine)\b", re.IGNORECASE
)
_HOW = re.compile(r"\b(?:how|what)\b", re.IGNORECASE)
_RATE = re.compile(rf"(?:(?<![a-z])(?:per|each|every|an?)\s+|/\s*)({PERIODS})(?![a-z])", re.IGNORECASE)
_GIVEN_RATE = re.compile(rf"\d\s+(?:[a-zA-Z]+\s+){{0,2}}?{_RATE.pattern}|\d{_RATE.pattern}", re.IGNORECASE)
"""Rate of a number, which a question gives: "if he is paid $20 per hour"."""
_DIMENSIONS = {"month": "time", "dollar": "money", "euro": "money", "sterling": "money", "yen": "money"}
_DIMENSIONS |= {"yuan": "money", "rupee": "money", "fahrenheit": "celsius", "kelvin": "celsius"}
"""Dimensions of units that nothing converts into each other."""


def in_another_unit(given: str, wanted: str, question: str) -> bool:
    """Return whether a tidy answer has another unit than the question asks for, or a letter of it for a unit.

    False if the truth has a unit: that one counts. A unit of another dimension is wrong if the last sentence asks for
    one thing; else it may be of another thing that is asked.
    """
    if unit_of(measured(wanted)[1]):
        return False
    if _another_rate(given, question):
        return True
    words = measured(given, letters=True)[1]
    found, asked = unit_of(words), _asked(question)
    if found is None or found in asked or _rate_aside(words, question):
        return False
    if (letter := re.sub(r"\\[a-z]+|[^a-zA-Z]", "", words)) and len(letter) == 1 and _is_variable(letter, question):
        return True
    alike = [unit for unit in asked if _dimension(unit[0]) == _dimension(found[0])]
    return bool(alike or _asked(_last_sentence(question)))


def _another_rate(given: str, question: str) -> bool:
    """Return whether an answer is for a week where the last sentence asks for a day, and for nothing else."""
    wanted = _GIVEN_RATE.sub("", _last_sentence(question))
    said, asked = ({one.lower() for one in _RATE.findall(text)} for text in (given, wanted))
    return len(said) == len(asked) == 1 and said != asked


def asked_things(question: str) -> frozenset[str]:
    """Return the words after "how many", or the units, of the last sentence that asks, if it asks for one thing."""
    last = _last_sentence(question)
    return frozenset(found[1].split()[-1] for pattern in (_HOW_MANY, _IN_UNIT) for found in pattern.finditer(last))


def _is_variable(letter: str, question: str) -> bool:
    """Return whether a question calculates with a letter, or asks for it."""
    one = rf"(?<![a-zA-Z\\]){letter}(?![a-zA-Z])"
    return bool(
        re.search(rf"{one}\$?\s*[-+=^<>*]|[-+*]\s*\d*{letter}(?![a-zA-Z])", question)
        or re.search(rf"(?i:\b(?:value of|what is|find|solve for|for what)\s+)\$?{one}", question)
    )


def _last_sentence(question: str) -> str:
    """Return the last sentence of a question that asks, if it asks for one thing; else nothing."""
    asking = [one for one in _SENTENCE.findall(question) if _ASKS.search(one)]
    return asking[-1] if asking and len(_HOW.findall(asking[-1])) < 2 else ""


@lru_cache(maxsize=256)  # of the question of a group
def _phrases(question: str) -> tuple[str, ...]:
    """Return the units that a question asks for, as text: those of a request such as "Give it in cm", else all."""
    for patterns in ((_REQUEST,), (_HOW_MANY, _IN_UNIT)):
        found = [match for pattern in patterns for match in pattern.finditer(question) if match[1] not in NO_UNITS]
        phrases = ["".join(filter(None, match.groups())) for match in found]
        phrases = [whole if unit_of(whole) else _numerator(whole) for whole in phrases]
        if any(map(unit_of, phrases)):
            return tuple(filter(unit_of, phrases))
    return ()


def _asked(question: str) -> tuple[tuple[Kind, object], ...]:
    """Return the units that a question asks for."""
    return tuple(filter(None, map(unit_of, _phrases(question))))


def _numerator(words: str) -> str:
    """Return a unit without what it is per: "hours" of "hours per week"."""
    return re.split(r"\bper\b|/", words)[0]


def _rate_aside(words: str, question: str) -> bool:
    """Return whether a unit is the one that is asked for but for what it is per, which only one of them says."""
    return any(
        unit_of(_numerator(words)) == unit_of(_numerator(one))
        and (_numerator(words) == words) != (_numerator(one) == one)
        for one in _phrases(question)
    )


def _dimension(kind: Kind) -> list[tuple[str, object]]:
    return sorted((_DIMENSIONS.get(name, name), exponent) for name, exponent in kind)
