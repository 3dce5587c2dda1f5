"""The final answer of a response: in \\boxed{}, after "Answer:" or "####", or the last number.

Every search is linear in the length of the response, so that megabytes cost milliseconds.
"""

import re
from collections import deque

BOXES = ("\\boxed{", "\\fbox{")
_MARK = re.compile(r"####|\banswer\s{0,3}(?:\*\*|\})?\s{0,3}(?::|\bis\b)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|\.\d+)(?:\s?/\s?\d+(?![\d.]))?%?")
_MAX_NUMBER = 64


def last_boxed(text: str) -> str | None:
    """Content of the last box whose braces are balanced; None where there is none."""
    end = len(text)
    for _ in range(_MAX_NUMBER):  # boxes that never close are few in practice and cheap to make by the million
        start = max(text.rfind(box, 0, end) for box in BOXES)
        if start < 0:
            return None
        opening = text.index("{", start)
        closing = _closing_brace(text, opening, end)
        if closing is not None:
            return text[opening + 1 : closing]
        end = start
    return None


def _closing_brace(text: str, opening: int, end: int) -> int | None:
    """Index of the brace that closes the one at `opening`; None when it is not closed before `end`."""
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
    """The last match, without keeping the others."""
    found = deque(pattern.finditer(text), maxlen=1)
    return found[0] if found else None


def last_marked(text: str) -> str | None:
    """The rest of the line after the last "####", "Answer:" or "answer is"; None where there is none."""
    last = _last(_MARK, text)
    if last is None:
        return None
    rest = text[last.end() :].lstrip(" \t*:\r\n")
    return rest.partition("\n")[0].strip() or None


def last_number(text: str) -> str | None:
    """The last number; None where there is none, or where it has more than 64 characters."""
    last = _last(_NUMBER, text)
    return last[0] if last and len(last[0]) <= _MAX_NUMBER else None


def final_answer(response: str) -> str | None:
    """The final answer of `response`: the last box that closes, else what follows the last mark, else a number."""
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed.strip() or None
    return last_marked(response) or last_number(response)
