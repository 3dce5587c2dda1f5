"""Answers beside what the question asks for, in a last sentence that goes on with another number.

How many cans can Joe buy?         He can buy 30 cans with $20.                        30
How many minutes does it take?     It takes 15 minutes to fill the 60 liter tank.      15
How many clips did she sell?       She sold 48 clips + 24 clips = 72 clips in 2 months.    72
"""

import re

from .asked_unit import asked_things
from .denial import is_denied_statement
from .last_statement import is_broken_off
from .units import unit

_SENTENCE = re.compile(r"(?<=[.!?])[\s*]+|\n")
_COUNTED = re.compile(
    r"(?<![\w.,/^$€£¥₹-])(?P<value>-?\d[\d,]*(?:\.\d+)?)\**\s{0,2}(?P<first>[a-zA-Z]+)(?:[\s-](?P<second>[a-zA-Z]+))?"
)
_NUMBER = re.compile(r"(?<![\w.])[$€£¥₹]?-?\d[\d,]*(?:\.\d+)?")
_CALCULATOR = re.compile(r"<<[^<>\n]*>>")
_COMPARED = re.compile(
    r"[\s*]*(?:more|less|fewer|longer|older|younger|taller|shorter|later|earlier|off|each|every|apiece|per)\b"
    r"|.*\band\s+\$?\d[\d,.]*\s+(?:in|on|at|by|from)\b"
)
"""Words after a counted thing that make it a difference, a share or one of several."""
_OPERATOR = re.compile(r"(?:(?<!\*)\*|[-+/×÷·^])\s*\$?$")


def asked_number(response: str, question: str) -> str | None:
    """Return the only number of the last sentence that counts what the question asks for; None if it is the last one.

    None also if there are several, or one that is denied, compared or calculated with.
    """
    things = asked_things(question)
    if not things or is_broken_off(response):
        return None
    sentence = _CALCULATOR.sub("", _SENTENCE.split(response.strip().rstrip(".!* "))[-1])
    numbers = [*_NUMBER.finditer(sentence)]
    counted = [one for one in _COUNTED.finditer(sentence) if _thing(one, things)]
    found = [one for one in counted if "=" not in sentence or sentence[: one.start()].rstrip("$ ").endswith("=")]
    if len(found) != 1 or found[0] is not counted[-1] or numbers[-1].end() <= found[0].end("value"):
        return None
    [only] = found
    beside = _OPERATOR.search(sentence[: only.start()]) or _COMPARED.match(sentence[only.end(_thing(only, things)) :])
    denied = is_denied_statement(sentence, only.start(), only.end("value"))
    return None if beside or denied else only["value"].strip()


def _thing(counted: re.Match[str], things: frozenset[str]) -> str:
    """Return which word after a number is one of the things, in singular or plural or as the same unit; "" for none."""
    for group in ("first", "second"):
        word, found = counted[group] or "", unit(counted[group] or "")
        alike = (
            thing.lower().rstrip("s") == word.lower().rstrip("s") or (found and found == unit(thing))
            for thing in things
        )
        if word and any(alike):
            return group
    return ""
