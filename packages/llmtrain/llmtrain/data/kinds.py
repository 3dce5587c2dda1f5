"""Kinds of questions whose answer can be guessed, or that no answer settles: true or false, multiple choice, proofs.

    kind_of(question)  ->  "choice", or "" for a question with an answer of its own

The text and the ground truth decide, so files without a column for the kind can be filtered.
Source: EntroPIC, B.1, leaves such questions out of its training sets and does not state its rules; these are ours.
"""

import re

from ..verifiers.math.answer_text import NO_ANSWERS
from ..verifiers.math.answer_words import STYLE
from .question import Question

KINDS = ("true-false", "choice", "proof")
"""Kinds of questions that can be left out."""
_VERDICTS = {"true", "false", "yes", "no", "正确", "错误", "对", "错", "是", "否"}
_STYLED = re.compile(rf"{STYLE}\{{([^{{}}]*)\}}")
_LETTER = re.compile(r"[(（]?\s*([A-Ja-j])\s*[).:）．、]?")
_OPTION = re.compile(r"(?<![a-zA-Z_\\])[(（]([A-Ja-j])[)）]|(?<![a-zA-Z0-9_\\])([A-J])[).:．、：]")
_PROOF = re.compile(
    r"(?:^|[.!?;:,$)\]]|\b(?:and|then|to))\s*(?:prove|show that)\b|(?:^|[。；：，,:])\s*(?:求证|证明)",
    re.IGNORECASE | re.MULTILINE,
)
"""Sentence, or part of one, that begins with "prove" or "show that"."""
_ASKS = re.compile(
    r"[?？]|\b(?:find|determine|calculate|compute|evaluate|solve|how many|what|which)\b|[求]\s*(?!证)|多少",
    re.IGNORECASE,
)
"""Words that ask for an answer besides a proof."""


def kind_of(question: Question) -> str:
    """Return the kind of a question, one of KINDS, or "" for another.

    true-false: the ground truth is true, false, yes or no. choice: it is a letter, and the text has that option and
    at least one more. proof: a sentence begins with "prove" or "show that" and nothing else is asked for, or the ground
    truth is "proof" or "not found". English and Chinese are known.
    """
    truth = str(question.ground_truth) if isinstance(question.ground_truth, str | bool) else ""
    said = _STYLED.sub(r"\1", truth).strip().strip("$.").strip()
    if said.lower() in _VERDICTS:
        return "true-false"
    if found := _LETTER.fullmatch(said):
        options = {(one or other).upper() for one, other in _OPTION.findall(_STYLED.sub(r"\1", question.text))}
        if found[1].upper() in options and len(options) > 1:
            return "choice"
    text = question.text
    if (_PROOF.search(text) and not _ASKS.search(text)) or re.sub(r"\W", "", said.lower()) in NO_ANSWERS:
        return "proof"
    return ""
