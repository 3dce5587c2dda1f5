"""Answers as text: what has no meaning is left out, plain numbers get their value. Nothing here evaluates anything."""

import re
from fractions import Fraction
from typing import Any

from .answer_tokens import STYLE, WORD, spoken
from .final_answer import last_boxed

MAX_ANSWER_CHARS = 2000
"""A longer answer counts as wrong unread; the longest ground truths of the public benchmarks have a few hundred."""

_PLAIN = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?: \d{3})+|\d{1,2000})(\.\d{1,2000})?")
_FRACTION = re.compile(r"([+-]?)\\frac\{(\d{1,2000})\}\{(\d{1,2000})\}|([+-]?)(\d{1,2000})/(\d{1,2000})")
_WHOLE = re.compile(rf"(?:{STYLE}|\\(?:boldsymbol|bm|underline|emph)\s*)\{{([^{{}}]*)\}}")
_CHOICE = re.compile(rf"(?:{STYLE}\{{\s*)?(?:\(([A-Z])\)|([A-Z])[.)])\s*\}}?(.*)", re.DOTALL)
_OTHER_CHOICE = re.compile(r"(?<![a-zA-Z\\])[A-Z](?![a-zA-Z])|(?<![a-zA-Z])(?:or|and|not)(?![a-zA-Z])")
_SAME = (("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\left", ""), ("\\right", ""), ("\\!", ""), ("\\,", ""))
_SPACE = re.compile(r"(?<!\d) | (?!\d)")
"""Not between digits: 2 1/2 is not 21/2."""
_FRAME = " \t\r\n$*.`"


def read_truth(ground_truth: Any) -> str:
    """The answer within a ground truth: all of it, or what stands in its box or after ####."""
    if isinstance(ground_truth, bool) or not isinstance(ground_truth, str | int | float):
        raise ValueError(f"the ground truth of math is text or a number, not {type(ground_truth).__name__}")
    text = str(ground_truth).rpartition("####")[2]
    text = (last_boxed(text) or text).strip()
    if not text:
        raise ValueError("the ground truth is empty")
    return text


def tidy(answer: str) -> str:
    """`answer` without what has no meaning: dollar signs and styles around it, spacing, \\left, a final full stop."""
    text = spoken(answer.strip(_FRAME))
    if (found := _WHOLE.fullmatch(text)) and not WORD.fullmatch(found[1].strip()):
        text = found[1].strip(_FRAME)
    for old, new in _SAME:
        # \left is not the beginning of \leftarrow
        text = re.sub(re.escape(old) + r"(?![a-zA-Z])", lambda _, new=new: new, text) if old in text else text  # type: ignore[misc]
    return " ".join(text.split())


def choice(text: str) -> str | None:
    """The letter of a choice that stands before its value, as in "(B) 42"; None where there is none or another one."""
    found = _CHOICE.fullmatch(text)
    return (found[1] or found[2]) if found and not _OTHER_CHOICE.search(found[3]) else None


def compact(text: str) -> str:
    """`text` without spaces that separate nothing, for comparing: those beside anything but letters and digits.

    The space after a command goes too: public benchmarks have lost it, and \\cotx stands for \\cot x.
    """
    text = re.sub(r"(\\[a-zA-Z]+) (?=[a-zA-Z])", r"\1", text)
    return re.sub(r"(?<![a-zA-Z0-9\\\\]) | (?![a-zA-Z0-9])", "", text)


def number(text: str) -> Fraction | None:
    """The value of a plain number or fraction, its percent sign left out; None for any other text."""
    text = (_SPACE.sub("", text) if " " in text else text).removeprefix("\\$").removesuffix("%").removesuffix("\\")
    if _PLAIN.fullmatch(text):
        return Fraction(text.replace(",", "").replace(" ", ""))
    if found := _FRACTION.fullmatch(text):
        sign, top, bottom = found.group(1, 2, 3) if found[2] else found.group(4, 5, 6)
        return Fraction(int(sign + top), int(bottom)) if int(bottom) else None
    return None
