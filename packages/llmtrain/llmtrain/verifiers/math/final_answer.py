"""Final answer of a response: in \\boxed{} or <answer>, after "Answer:" or "####", or in its last statement.

Every search is linear in the length of the response, so that megabytes cost milliseconds.
"""

import re
from collections import deque
from collections.abc import Callable

from .answer_words import NEGATION, RETRACTION, STYLE, changes, scale_after
from .asked_number import asked_number
from .brackets import closing_brace
from .denial import NEAR, is_denied_place, is_taken_back
from .formulas import FORMULA, FORMULA_UNNAMED, inside, with_dollars
from .last_statement import last_statement
from .unit_beside import with_unit

BOXES = ("\\boxed{", "\\fbox{")
"""Beginnings of a box."""
TAG, TAG_END = "<answer>", "</answer>"
"""Beginning and end of a tagged answer."""
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*(\{)?")
_BARE = re.compile(r"\s*([-+]?\d[\d,]*(?:\.\d+)?|\\[a-zA-Z]+(?:\{[^{}]*\})*|[a-zA-Z](?![a-zA-Z]))")
_PART_BEFORE = re.compile(
    r"(?:[\d})]\s*[-+*/]|\^|\d|\\(?:cdot|times|div|sqrt)\s*|\\(?:frac|sqrt)\s*\{)(?:(?<!\d)\s*)?\{?$"
)
_PART_AFTER = re.compile(
    r"\s*\}?\s*(?:\^|[*/]\s*[\d\\(a-z]|\\(?:cdot|times|div|over)(?![a-zA-Z])"
    r"|[-+]\s*(?:\d|\\(?:frac|sqrt|pi)))|[a-z](?![a-zA-Z])"
)
"""Signs before and after a box that make it a part of an expression."""
_SET_WORD = re.compile(rf"^\s*{STYLE}\{{")
_MINUS = re.compile(r"[=$(\[:]\s*[-−]\s*$")
_EQUATION = re.compile(r"[^$\n]*?=")
_BETWEEN = re.compile(r"[\s$,;\\]*(?:(?:and|or|\\text\s*\{\s*(?:and|or)\s*\})[\s$,\\]*)?")
"""Text between boxes or tags that are one answer."""
_MARK = re.compile(r"####|\banswer\s{0,3}(?:\*\*|\})?\s{0,3}(?::|\bis\b)", re.IGNORECASE)
_ONE_VALUE = r"(?:[a-z]\s*=\s*)?(?:\$[^$\n]+\$|\\\([^\n]+?\\\)|\\\[[^\n]+?\\\]|-?[\d.,/]*\d)[.!)*]*(?=\s*(?:\n|$))"
_ASIDE = (
    r"(?:,?\s+\(?(?:because|since|as|which)\b"
    rf"|,\s+(?:and\s+)?not\s+{_ONE_VALUE}"
    rf"|,?\s+(?:(?:attained|achieved|reached|assumed|taken|occurring)\s+(?:at|for|when|by)|at)\s+{_ONE_VALUE})"
)
"""Beginning of what follows an answer in its sentence: its reason, what it is not, where it is attained."""
_SENTENCE = re.compile(
    rf"(?:{FORMULA_UNNAMED}|(?!\n|[.!](?=[*)]*(?:\s|$))|{_ASIDE}).)*",
    re.DOTALL | re.IGNORECASE,
)
_FILLERS = re.compile(
    r"(?:[\s*:,]|(?:therefore|thus|hence|then|so|simply|exactly|clearly|indeed|equal to|given by"
    r"|as follows|the|following|value|number|formula|expression|final|result|option|choice)(?=[\s*:,]))*",
    re.IGNORECASE,
)
"""Words that may stand between a mark and an answer."""
_BEGINS_WITH_FORMULA = re.compile(rf"(?:{FORMULA})(?P<rest>.*)", re.DOTALL)
_MORE = re.compile(r"[^a-zA-Z\s,.*:'()-]")
_PROSE = re.compile(r"not\b|(?:[a-zA-Z]{2,}\s+){2}[^\d]*\d", re.IGNORECASE)
"""Text that is no answer if numbers follow."""
_TELLS = re.compile(
    r"[^\d\\$]*(?:\b(?:is|are|equals?|get|gets|have|has|gives?|yields?|costs?|takes?)|[:=])\s*(?=[$\\(\d.+-])",
    re.IGNORECASE,
)
"""Beginning of a sentence that says what the answer is."""
_TELLS_WORDS = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s+)?(?P<about>(?:the|its?|this|his|her|their|our|my)\b(?:\s+[\w'-]+){0,6})"
    r"\s+(?:is|are|was|were)\s+(?P<said>\(?[A-Z][\w'-]*\)?(?:\s+[A-Z][\w'-]*){0,3})[.!]?",
    re.IGNORECASE,
)
"""Sentence whose answer is a choice or a name."""
_OTHER = re.compile(
    rf"\b(?:{NEGATION}|{RETRACTION}|opposite|other|worst|least|alternative|if|that|whether|except|but|than|false"
    r"|claim(?:ed)?|guess|fake|is|are|was|were|might|may|could)\b",
    re.IGNORECASE,
)
"""Words of a sentence that names something else than the answer, or doubts it."""
_NOT = re.compile(r"not\b", re.IGNORECASE)
_NOT_BUT = re.compile(r"not\s+(?:(?!\bbut\b)[^.,\n])+?,?\s+but\s+(?:rather\s+)?(?=[-$\\(\d])", re.IGNORECASE)
"""Denied value and "but" before an answer, as in "not 42 but 43"."""
_BEFORE_ASIDE = re.compile(rf"[^!?\n]*?\d[^!?\n]*?(?={_ASIDE})", re.IGNORECASE)
_ONLY = re.compile(r"(?:exactly|precisely|only|just)\s+(?=[-$\\(\d])", re.IGNORECASE)
_ANOTHER_NUMBER, _COMMANDS = re.compile(r"[a-zA-Z]{2,}[^\d]*\d"), re.compile(r"\\[a-zA-Z]+")
_END_TOKENS = re.compile(r"(?:\s*(?:</s>|<\|\w{1,30}\|>|<eos>|<end_of_turn>))+\s*$")
"""Special tokens at the end of a response."""
_MAX_BOXES = 64
_LONGEST = 4000
"""Upper limit for the characters after a mark that are searched: more than an answer may have."""

Held = tuple[str, int]
"""Content of a box or tag, and where it ends."""


def last_boxed(text: str) -> str | None:
    """Return the content of the last box whose braces are balanced, or None.

    Boxes that follow each other, as in \\boxed{1}, \\boxed{2}, are one answer: a list. A box without braces holds the
    number, command or letter after it, as in MATH.
    """
    held = _boxes(text)
    return _listed([content.strip() for content, _ in held]) if held else None


def boxed_answer(text: str) -> str | None:
    """Return the content of the last box, as `last_boxed` does, with the sign, scale and unit that stand beside it.

    "" if the box is a part of an expression, as in 2 \\cdot \\boxed{5}; it may be the blank of an equation.
    """
    held = _boxes(text)
    if not held:
        return None
    content, end = held[-1]
    start = max(text.rfind(box.rstrip("{"), 0, end - len(content)) for box in BOXES)
    before, after = text[max(0, start - NEAR) : start], text[end : end + NEAR]
    answer = _listed([content.strip() for content, _ in held])
    if (_PART_BEFORE.search(before) or _PART_AFTER.match(after)) and not _EQUATION.match(after):
        return ""
    if _MINUS.search(before):
        answer = f"-({answer})"
    scale = scale_after(_SET_WORD.sub(" ", after))
    return answer + scale if scale else with_unit(answer, before, after)


def _boxes(text: str) -> list[Held]:
    return _last_held(text, tuple(box.rstrip("{") for box in BOXES), _box_at)


def _listed(contents: list[str]) -> str:
    """Return several answers as a list, or one that was given several times."""
    return ", ".join(contents if len({*contents}) > 1 else contents[:1])


def _last_held(text: str, beginnings: tuple[str, ...], held_at: Callable[[str, int, int], Held | None]) -> list[Held]:
    """Return the last boxes or tags that follow each other and are not denied, in order."""
    found = list[Held]()
    end = following = len(text)
    for _ in range(_MAX_BOXES):  # boxes that never close are few in practice and cheap to make by the million
        start = max(text.rfind(beginning, 0, end) for beginning in beginnings)
        if start < 0:
            break
        held = None if is_denied_place(text, start) else held_at(text, start, end)
        if held is None or is_taken_back(text, held[1]):
            end = start
        elif found and not _BETWEEN.fullmatch(text, held[1], following):
            break
        else:
            found.append(held)
            end = following = start
    return found[::-1]


def is_cut_off(text: str) -> bool:
    """Return whether the last box opens and never closes: what it would have said is not known."""
    start = max(text.rfind(box) for box in BOXES)
    return start >= 0 and closing_brace(text, text.index("{", start), len(text)) is None


def _box_at(text: str, start: int, end: int) -> Held | None:
    """Return the content of the box that begins at `start`, and where it ends; None for none before `end`."""
    opening = _BOX.match(text, start, end)
    if opening is None:
        return None
    if not opening[1]:
        bare = _BARE.match(text, opening.end(), end)
        return (bare[0], bare.end()) if bare else None
    closing = closing_brace(text, opening.end() - 1, end)
    return None if closing is None else (text[opening.end() : closing], closing + 1)


def _tag_at(text: str, start: int, end: int) -> Held | None:
    """Return the content of the tag that begins at `start`, and where it ends; None for none before `end`."""
    closing = text.find(TAG_END, start, end)
    return None if closing < 0 else (text[start + len(TAG) : closing], closing + len(TAG_END))


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match, without keeping the others."""
    found = deque(pattern.finditer(text), maxlen=1)
    return found[0] if found else None


def last_marked(text: str) -> str | None:
    """Return the answer after the last "####", "Answer:" or "answer is", or None if there is none.

    It is the formula that begins there, or the text to the end of the sentence or line if that says more.
    """
    last = _last(_MARK, text)
    if last is None:
        return None
    rest = text[last.end() :].lstrip(" \t*:\r\n")
    near = rest[:_LONGEST]
    start = _end(_FILLERS, near)
    if not near[start:].strip():
        start = 0
    start += _end(_NOT_BUT, near[start:])
    end = start + _end(_SENTENCE, near[start:])
    said = near[start:end].strip()
    if is_taken_back(near, end) or (_PROSE.match(said) and last_statement(rest[end:])):
        return None
    return _without_marks(said)


def _without_marks(said: str) -> str | None:
    """Return the formula that a text begins with, or all of it if it says more."""
    formula = _BEGINS_WITH_FORMULA.match(said)
    if formula and not _MORE.search(formula["rest"]) and not changes(formula["rest"]):
        return with_unit(inside(formula), "", formula["rest"]) or None
    return with_dollars(said) or None


def _end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def _in_tag(content: str) -> str | None:
    """Return the answer in a tag: all that stands there, or what a sentence says that it is."""
    text = content.strip()
    if is_cut_off(text):
        return None
    marked = boxed_answer(text) or last_marked(text)
    if marked:
        return marked.strip()
    text = text[_end(_NOT_BUT, text) :]
    if _NOT.match(text):
        return None
    text = text[_end(_ONLY, text) :]
    if (named := _TELLS_WORDS.fullmatch(text)) and not _OTHER.search(named["about"]):
        return named["said"]
    if (aside := _BEFORE_ASIDE.match(text)) and not _TELLS.match(text):
        return None if is_taken_back(text, aside.end()) else _without_marks(aside[0].strip())
    told = _TELLS.match(text)
    single = told and not _ANOTHER_NUMBER.search(_COMMANDS.sub("", text[told.end() :]))
    return last_statement(text) if single else _without_marks(text)


def final_answer(response: str, question: str = "") -> str | None:
    """Return the final answer: the last box or tag, else the answer after the last mark, else the last statement.

    Of the numbers of a last sentence, the one that counts what the question asks for comes before the last one.
    None if the last box or tag does not close or is taken back, whatever stands before it.
    """
    response = response[:-_LONGEST] + _END_TOKENS.sub("", response[-_LONGEST:])
    tags = _last_held(response, (TAG,), _tag_at)
    after = response[tags[-1][1] :] if tags else response
    boxed = boxed_answer(after)
    if is_cut_off(after) or (boxed is None and TAG in after):
        return None
    if boxed is not None:
        return boxed.strip() or None
    if tags:
        said = [_in_tag(content) or "" for content, _ in tags]
        return _listed(said) if all(said) else None
    return last_marked(response) or asked_number(response, question) or last_statement(response)
