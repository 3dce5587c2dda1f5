"""Final answer of a response: in \\boxed{}, after "Answer:" or "####", or the last number.

Every search is linear in the length of the response, so that megabytes cost milliseconds.
"""

import re
from collections import deque

from .answer_words import NEGATION, changes

BOXES = ("\\boxed{", "\\fbox{")
"""Beginnings of a box."""
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*(\{)?")
_BARE = re.compile(r"\s*([-+]?\d[\d,]*(?:\.\d+)?|\\[a-zA-Z]+(?:\{[^{}]*\})*|[a-zA-Z])")
_NOT = re.compile(
    rf"\b(?:{NEGATION}|than|anything but|unlikely)\b"
    r"(?:\s+(?:to|be|been|equals?|the|an?|really|actually|answer|value|=))*[\s:*]*(?:\$|\\[(\[])*\s*$",
    re.IGNORECASE,
)
"""Words before a box that say what the answer is not."""
_BACK = (
    rf"(?:(?:wrong|incorrect|false|untrue|mistaken|invalid|a mistake|an error)"
    rf"|{NEGATION}\s+(?:\w+\s+)?(?:right|correct|true|the\s+answer))(?=\s*(?:[^\w\s]|$|\n|(?:because|since|as)\b))"
)
"""Words that end a clause and take back what it is about; "I was wrong earlier" is about something else."""
_SAYING = (
    r"(?:(?:and|but|oh|no|wait|actually|however|which|that|this|it|the|answer|i|am|was|is|were|looks|seems|must|be"
    r"|clearly|so|s|m)(?![a-zA-Z])[^a-zA-Z\d\n]{1,5})"
)
_TAKEN_BACK = re.compile(rf"(?:[^a-zA-Z\d\n]{{0,20}}|[^a-zA-Z\d]{{0,20}}{_SAYING}{{1,8}}){_BACK}", re.IGNORECASE)
"""Words after an answer that take it back, as in "\\boxed{5}. No, that is wrong."."""
_DENIED = re.compile(
    rf"\b(?:{NEGATION}|than(?!.*\b(?:is|are|was|were|equals?)\b)|except|anything but|unlikely|hardly|rarely|doubt"
    r"|reject|rule out|fails to|used to|(?:may|might|could)(?:\s+\w+ly)?\s+(?:have\s+been|be|equal))(?![a-zA-Z])",
    re.IGNORECASE,
)
"""Words before a number in its clause that deny or doubt it."""
_CLAUSE = re.compile(
    r"[.,;:!?\n]|\b(?:(?<!anything )but|so|then|therefore|thus|hence|and|since|because)\b", re.IGNORECASE
)
_BACK_IN_SENTENCE = re.compile(rf"[^.!?\n]*?\b{_BACK}", re.IGNORECASE)
_NEAR = 100
"""Characters beside an answer in which it may be denied or taken back."""
_BETWEEN_BOXES = re.compile(r"[\s$,;\\]*(?:(?:and|or|\\text\s*\{\s*(?:and|or)\s*\})[\s$,\\]*)?")
_MARK = re.compile(r"####|\banswer\s{0,3}(?:\*\*|\})?\s{0,3}(?::|\bis\b)", re.IGNORECASE)
_FORMULA = (
    r"\$\$(?P<shown>.+?)\$\$|\\\[(?P<set>.+?)\\\]|\\\((?P<inline>.+?)\\\)"
    r"|\$(?P<tight>[^\s$](?:[^$\n]*[^\s$])?)\$(?!\d)|\$(?P<loose>\s[^$]*\s)\$"
)
"""Formula; between dollar signs with a space at both ends or at neither: "$18 a day, not $20" has none."""
_SENTENCE = re.compile(
    rf"(?:{_FORMULA}|(?!\n|[.!](?=[*)]*(?:\s|$))|,?\s+\(?(?:because|since|as|which)\b).)*".replace("?P<", "?P<_"),
    re.DOTALL | re.IGNORECASE,
)
_FILLERS = re.compile(
    r"(?:[\s*:,]|(?:therefore|thus|hence|then|so|simply|exactly|approximately|clearly|indeed|equal to|given by"
    r"|as follows|the|following|value|number|formula|expression|final|result|option|choice)(?=[\s*:,]))*",
    re.IGNORECASE,
)
"""Words that may stand between a mark and an answer."""
_BEGINS_WITH_FORMULA = re.compile(rf"(?:{_FORMULA})(?P<rest>.*)", re.DOTALL)
_MORE = re.compile(r"[^a-zA-Z\s,.*:'()-]")
_PROSE = re.compile(r"not\b|(?:[a-zA-Z]{2,}\s+){2}[^\d]*\d", re.IGNORECASE)
"""Text that is no answer if numbers follow."""
_NUMBER = re.compile(r"-?(?:\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|\.\d+)(?:\s?/\s?\d+(?![\d.]))?%?")
_MAX_NUMBER = 64
_LONGEST = 4000
"""Upper limit for the characters after a mark that are searched: more than an answer may have."""


def last_boxed(text: str) -> str | None:
    """Return the content of the last box whose braces are balanced, or None.

    Boxes that follow each other, as in \\boxed{1}, \\boxed{2}, are one answer: a list. A box without braces holds the
    number, command or letter after it, as in MATH.
    """
    found = list[str]()
    end = following = len(text)
    for _ in range(_MAX_NUMBER):  # boxes that never close are few in practice and cheap to make by the million
        start = max(text.rfind(box.rstrip("{"), 0, end) for box in BOXES)
        if start < 0:
            break
        box = None if _NOT.search(text[max(0, start - _NEAR) : start]) else _box_at(text, start, end)
        if box is None or _TAKEN_BACK.match(text[box[1] : box[1] + _NEAR]):
            end = start
        elif found and not _BETWEEN_BOXES.fullmatch(text, box[1], following):
            break
        else:
            found.append(box[0].strip())
            end = following = start
    return None if not found else ", ".join(reversed(found))


def is_cut_off(text: str) -> bool:
    """Return whether the last box opens and never closes: what it would have said is not known."""
    start = max(text.rfind(box) for box in BOXES)
    return start >= 0 and closing_brace(text, text.index("{", start), len(text)) is None


def _box_at(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return the content of the box that begins at `start`, and where it ends; None for none before `end`."""
    opening = _BOX.match(text, start, end)
    if opening is None:
        return None
    if not opening[1]:
        bare = _BARE.match(text, opening.end(), end)
        return (bare[0], bare.end()) if bare else None
    closing = closing_brace(text, opening.end() - 1, end)
    return None if closing is None else (text[opening.end() : closing], closing + 1)


def closing_brace(text: str, opening: int, end: int) -> int | None:
    """Return the index of the brace that closes the one at `opening`, or None if none does before `end`."""
    depth = 0
    for found in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, opening, end):
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth == 0:
                return found.start()
    return None


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
    end = start + _end(_SENTENCE, near[start:])
    said = near[start:end].strip()
    if _TAKEN_BACK.match(near[end : end + _NEAR]) or (_PROSE.match(said) and last_number(rest[end:])):
        return None
    formula = _BEGINS_WITH_FORMULA.match(said)
    if formula and not _MORE.search(formula["rest"]) and not changes(formula["rest"]):
        return _inside(formula) or None
    return re.sub(_FORMULA, lambda found: f"${_inside(found)}$", said, flags=re.DOTALL) or None


def _inside(formula: re.Match[str]) -> str:
    return next(filter(None, formula.groups())).strip()


def _end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def last_number(text: str) -> str | None:
    """Return the last number, or None if there is none, it has more than 64 characters, or its sentence denies it."""
    last = _last(_NUMBER, text)
    if last is None or len(last[0]) > _MAX_NUMBER:
        return None
    before, after = text[max(0, last.start() - _NEAR) : last.start()], text[last.end() : last.end() + _NEAR]
    denied = _DENIED.search(_CLAUSE.split(before)[-1])
    return None if denied or _TAKEN_BACK.match(after) or _BACK_IN_SENTENCE.match(after) else last[0]


def final_answer(response: str) -> str | None:
    """Return the final answer: the last box, else the answer after the last mark, else the last number.

    None if the last box does not close, whatever stands before it.
    """
    if is_cut_off(response):
        return None
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed.strip() or None
    return last_marked(response) or last_number(response)
