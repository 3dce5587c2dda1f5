"""Answers as text: remove decoration, compare words and choices. Nothing is evaluated here."""

import re
from typing import Any

from .answer_words import APPROXIMATELY, STYLE, WORD, spoken
from .brackets import closing_brace
from .final_answer import BOXES, last_boxed
from .word_number import in_digits

MAX_ANSWER_CHARS = 2000
"""Upper limit for the length of an answer; ground truths of public benchmarks have a few hundred characters."""

_WHOLE = re.compile(rf"(?:{STYLE}|\\(?:boldsymbol|bm|underline|emph)\s*)\{{([^{{}}]*)\}}")
_CHOICE = re.compile(
    rf"(?:{STYLE}\{{\s*)?(?:\(([A-Z])\)|([A-Z])[.):])\s*\}}?(.*)"
    rf"|(?:{STYLE}\{{\s*)?(?i:option|choice|answer)\s*\}}?\s*\(?([A-Z])\)?\s*\}}?()",
    re.DOTALL,
)
_OTHER_CHOICE = re.compile(
    r"(?<![a-zA-Z\\])[A-Z](?![a-zA-Z])|(?<![a-zA-Z])(?:or|and|not)(?![a-zA-Z])"
    r"|^[^a-zA-Z]*(?:(?i:is|was|isn['’]?t|wasn['’]?t)\s+(?!correct|right)|(?i:wrong|incorrect|mistaken|rejected)[^a-zA-Z]*$)"
)
"""Words after a choice that name another one or take it back."""
_SAME = [
    (re.compile(rf"{old}(?![a-zA-Z])"), new)  # \left is not the beginning of \leftarrow
    for old, new in (
        *((r"\\[dtc]frac", r"\\frac"), (r"\\(?:left|right|!|,)", ""), (r"(?<!\b0)\{,\}(?=\d{3}(?!\d))", ",")),
        (rf"(?<=\d)\s*(?:per ?cent|{STYLE}\{{\s*per ?cent\s*\}})", "%"),
        (r"(?<=\d)\{,\}(?=\d)", "."),  # as in 0{,}25
        (r"(?<![\d.])10\s*\*\*\s*(?=[-\d{])", "10^"),
        (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r"\\times "),  # as in 1.5 x 10^3
        (
            rf"^((?:\\?[a-zA-Z]+\s*=\s*)?)(?:(?:{STYLE}\{{\s*)?(?i:{APPROXIMATELY})\s*\}}?\s*|~\s*(?!.*~$)(?=[-\d.$\\]))"
            r"(?=[-+\d.$\\])",
            r"\1\\approx ",
        ),
        (r"\{\s*([,:])\s*\}|\\text\s*\{\s*([,:;])\s*\}", r"\1\2"),
    )
]
_SAME_WORDS = {"dne": "does not exist", "divergent": "diverges", "convergent": "converges"}
_IN_FORMULA = r"\$[^$]*(?<![a-zA-Z\\])%s(?![a-zA-Z])[^$]*\$"
"""Formula with a letter."""
NO_ANSWERS = ("proof", "notfound")
"""Words of NuminaMath-1.5 in the place of an answer."""
_FRAME = " \t\r\n$*.`"
_BEFORE = re.compile(r"(?:[\s$*`]|\.(?!\d|\\overline|\\dot))*")
_STYLED = re.compile(rf"(?:{STYLE}|\\(?:boldsymbol|bm|underline|emph|displaystyle)\s*)\{{")
_BRACKETED = re.compile(r"\\\((.*)\\\)|\\\[(.*)\\\]", re.DOTALL)


def read_truth(ground_truth: Any) -> str:
    """Return the answer within a ground truth: all of it, or what stands in its box or after ####.

    Several answers in a list are one answer, with commas between them.
    """
    if isinstance(ground_truth, list) and ground_truth:
        return ", ".join(map(read_truth, ground_truth))
    if not isinstance(ground_truth, str | int | float):
        raise ValueError(f"the ground truth of math is text or a number, not {type(ground_truth).__name__}")
    text = str(ground_truth).rpartition("####")[2]
    boxed = last_boxed(text)
    if boxed is None and any(box.rstrip("{") in text for box in BOXES):
        raise ValueError(f"the box in the ground truth is not read: {text[-80:]!r}")
    text = (boxed or text).strip()
    if not text:
        raise ValueError("the ground truth is empty")
    if text.lower() in NO_ANSWERS:
        raise ValueError(f"the ground truth is {text!r}: the question has no answer")
    return text


def tidy(answer: str) -> str:
    """Return `answer` without decoration: dollar signs and styles around it, spacing, \\left, a final full stop."""
    text = _bare(answer)
    if found := _BRACKETED.fullmatch(text):
        text = _bare(found[1] or found[2] or "")
    while (styled := _STYLED.match(text)) and closing_brace(text, styled.end() - 1, len(text)) == len(text) - 1:
        if WORD.fullmatch(text[styled.end() : -1].strip()):
            break
        text = _bare(text[styled.end() : -1])
    text = spoken(text)
    if (found := _WHOLE.fullmatch(text)) and not WORD.fullmatch(found[1].strip()):
        text = _bare(found[1])
    for old, new in _SAME:
        text = old.sub(new, text)
    return in_digits(" ".join(text.split()))


def _bare(text: str) -> str:
    """Return `text` without dollar signs, stars and full stops around it; .5 keeps its point."""
    text = text.rstrip(_FRAME)
    before = _BEFORE.match(text)
    return text[before.end() :] if before else text


def same_text(given: str, wanted: str, question: str = "") -> bool:
    """Return whether tidy answers are equal as text, as words in any case and style, or as choices.

    A small letter that is a formula of the question is no choice.
    """
    if compact(given) == compact(wanted) or choice(given) == wanted.strip("()"):
        return True
    if re.fullmatch("[a-z]", given) and given != wanted and re.search(_IN_FORMULA % given, question):
        return False
    word = _word(given)
    return word is not None and word == _word(wanted)


def choice(text: str) -> str | None:
    """Return the letter of a choice that stands before its value, as in "(B) 42"; None if none or another one does."""
    found = _CHOICE.fullmatch(text)
    if not found or _OTHER_CHOICE.search(found[3] or ""):
        return None
    return found[1] or found[2] or found[4]


def _word(text: str) -> str | None:
    """Return the small letters of an answer that is words or a letter, such as \\text{Even} or (b); None for others."""
    found = _WHOLE.fullmatch(text)
    inner = (found[1] if found else text).strip(" .")
    inner = _SAME_WORDS.get(inner.casefold(), inner)
    if WORD.fullmatch(inner) or re.fullmatch(r"[a-zA-Z]|\([a-zA-Z]\)", inner):
        return inner.strip("()").casefold()
    return None


def compact(text: str) -> str:
    """Return `text` without spaces that separate nothing, for comparing: those beside other than letters and digits.

    The space after a command goes too: public benchmarks have lost it, and \\cotx stands for \\cot x.
    """
    text = re.sub(r"(\\[a-zA-Z]+) (?=[a-zA-Z])", r"\1", text)
    return re.sub(r"(?<![a-zA-Z0-9\\\\]) | (?![a-zA-Z0-9])", "", text)
