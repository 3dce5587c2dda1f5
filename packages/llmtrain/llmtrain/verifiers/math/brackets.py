"""Brackets in the text of answers: where they close, and what stands outside them."""

import re

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def closing_brace(text: str, opening: int, end: int) -> int | None:
    """Return the index of the brace that closes the one at `opening`, or None if none does before `end`."""
    depth = 0
    for found in _BRACE.finditer(text, opening, end):
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth == 0:
                return found.start()
    return None


def split(text: str, separators: str) -> list[str]:
    """Return the parts of `text` between single characters `separators` outside all brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth <= 0 and char in separators:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def closed_part(text: str, at: int) -> str:
    """Return the part of `text` around index `at` without brackets that nothing opens or closes, as in "5) and"."""
    opened: list[int] = []
    start, end = 0, len(text)
    for index, char in enumerate(text):
        if char in "([{":
            opened.append(index)
        elif char in ")]}":
            if opened:
                opened.pop()
            elif index < at:
                start = index + 1
            else:
                end = index
                break
    before = [index + 1 for index in opened if index < at]
    after = [index for index in opened if index > at]
    return text[max([start, *before]) : min([end, *after])]
