"""The question in a prompt, and answers that stand in it."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_MARKUP = re.compile(
    r"\\(?:left|right|displaystyle|limits|[bB]igg?[lr]?)(?![a-zA-Z])|\\[,;:!()\[\]]|\\q?quad(?![a-zA-Z])|[${}`]"
    r"|(?<=\d),(?=\d{3})"
)
"""Markup that changes no formula: sizes, spaces, dollar signs, braces, commas between thousands."""
_SPACE = re.compile(r"(?<![a-zA-Z0-9])\s+|\s+(?![a-zA-Z0-9])")
"""Spaces, except those between two words."""
_SIGNS = ((r"\\(?:cdot|times)(?![a-zA-Z])|[×·∗]|\*\*?", "*"), (r"\\div(?![a-zA-Z])|÷", "/"), ("[−–]", "-"))
_FRACTION = re.compile(r"\\[dtc]frac")


def text_of(prompt: Any) -> str:
    """Return the text of a prompt: itself, or what the user says in chat messages; "" for None.

    A number is its digits, and a single message is a list of one.
    """
    if prompt is None or isinstance(prompt, str | int | float):
        return "" if prompt is None else str(prompt)
    prompt = [prompt] if isinstance(prompt, Mapping) else prompt
    messages = [message for message in prompt if isinstance(message, Mapping)]
    said = [message for message in messages if message.get("role") == "user"] or messages
    return "\n".join(str(message.get("content", "")) for message in said)


@lru_cache(maxsize=256)  # of the question of a group
def plain(text: str) -> str:
    """Return `text` with one way of writing a formula: no markup that changes nothing, one sign for a product."""
    for old, new in _SIGNS:
        text = re.sub(old, new, text)
    return _SPACE.sub("", _MARKUP.sub("", _FRACTION.sub(r"\\frac", text)))


def stands_in(answer: str, text: str) -> bool:
    """Return whether `answer` stands in `text`, up to markup, and not as part of a longer number or word."""
    wanted, said = plain(answer).strip(". "), plain(text)
    if not wanted or wanted not in said:
        return False
    before = r"(?<![\w\\.])" if wanted[0].isalnum() else ""
    after = r"(?!\w|\.\d)" if wanted[-1].isalnum() else ""
    return re.search(before + re.escape(wanted) + after, said) is not None
