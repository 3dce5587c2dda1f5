"""Answers as text: what has no meaning is left out, plain numbers get their value. Nothing here evaluates anything."""

import re
from fractions import Fraction
from typing import Any

from .final_answer import last_boxed

MAX_ANSWER_CHARS = 2000
"""A longer answer counts as wrong unread; the longest ground truths of the public benchmarks have a few hundred."""

_PLAIN = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,64})(\.\d{1,64})?")
_FRACTION = re.compile(r"([+-]?)\\frac\{(\d{1,64})\}\{(\d{1,64})\}|([+-]?)(\d{1,64})/(\d{1,64})")
_SAME = (("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\left", ""), ("\\right", ""), ("\\!", ""), ("\\,", ""))
_FRAME = " \t\r\n$*.`"


def read_truth(ground_truth: Any) -> str:
    """The answer within a ground truth: all of it, or what stands in its box or after ####."""
    if isinstance(ground_truth, bool) or not isinstance(ground_truth, str | int | float):
        raise ValueError(f"the ground truth of math is text or a number, not {type(ground_truth).__name__}")
    text = str(ground_truth)
    if "####" in text:
        text = text.rpartition("####")[2]
    text = (last_boxed(text) or text).strip()
    if not text:
        raise ValueError("the ground truth is empty")
    return text


def tidy(answer: str) -> str:
    """`answer` without what has no meaning: dollar signs around it, spacing, \\left and \\right, a final full stop."""
    text = answer.strip(_FRAME)
    for old, new in _SAME:
        # \left is not the beginning of \leftarrow
        text = re.sub(re.escape(old) + r"(?![a-zA-Z])", lambda _, new=new: new, text) if old in text else text  # type: ignore[misc]
    return " ".join(text.split())


def compact(text: str) -> str:
    """`text` without spaces that separate nothing, for comparing: those beside anything but letters and digits.

    The space after a command goes too: public benchmarks have lost it, and \\cotx stands for \\cot x.
    """
    text = re.sub(r"(\\[a-zA-Z]+) (?=[a-zA-Z])", r"\1", text)
    return re.sub(r"(?<![a-zA-Z0-9\\\\]) | (?![a-zA-Z0-9])", "", text)


def number(text: str) -> Fraction | None:
    """The value of a plain number or fraction, its percent sign left out; None for any other text."""
    text = text.replace(" ", "").removeprefix("\\$").removesuffix("%").removesuffix("\\")
    if _PLAIN.fullmatch(text):
        return Fraction(text.replace(",", ""))
    if found := _FRACTION.fullmatch(text):
        sign, top, bottom = found.group(1, 2, 3) if found[2] else found.group(4, 5, 6)
        return Fraction(int(sign + top), int(bottom)) if int(bottom) else None
    return None
