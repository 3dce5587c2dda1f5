"""Words beside an answer that deny it or take it back, as in "it is not 5" and "5. No, that is wrong"."""

import re

from .answer_words import NEGATION

NEAR = 100
"""Characters beside an answer in which it may be denied or taken back."""
_NOT = re.compile(
    rf"\b(?:(?!no\s*:){NEGATION}|than|anything but|(?:any|every)\w*(?:\s+\w+)? except|unlikely)\b"
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
_CORRECTED = re.compile(
    r"[^a-zA-Z\d]{0,20}(?:(?:oops|sorry|correction|wait|hmm|actually|i meant|my mistake|no(?=[,:]))\b"
    r"[^\n]*?(?:\d|\b(?:wrong|incorrect|mistake|error|not right|recheck)\b)"
    r"|(?:is|was|would be|seems|looks)\s+(?:the\s+)?(?:wrong|incorrect)\b(?:\s+answer)?|or\s+[$\\({]*-?\d)",
    re.IGNORECASE,
)
"""Words after an answer that put another one in its place, as in "\\boxed{5}. Sorry, 6"."""
_CONFIRMED = re.compile(r"\bcorrect\b", re.IGNORECASE)
"""Word that confirms the answer instead: "Actually, this is correct: 5 = 2 + 3"."""
_DENIED = re.compile(
    rf"\b(?:{NEGATION}|instead of\s*\$?$"
    r"|than(?!.*\b(?:is|are|was|were|equals?)\b)|except|anything but|unlikely|hardly|rarely|doubt"
    r"|reject|rule out|fails to|used to|(?:may|might|could)(?:\s+\w+ly)?\s+(?:have\s+been|be|equal))(?![a-zA-Z])",
    re.IGNORECASE,
)
"""Words before a number in its clause that deny or doubt it."""
_CLAUSE = re.compile(
    r"[.,;:!?\n]|\b(?:(?<!anything )but|so|then|therefore|thus|hence|and|since|because)\b", re.IGNORECASE
)
_BACK_IN_SENTENCE = re.compile(rf"[^.!?\n]*?\b{_BACK}", re.IGNORECASE)


def is_denied_place(text: str, start: int) -> bool:
    """Return whether the words directly before index `start`, where a box or tag begins, deny what it holds."""
    return _NOT.search(text[max(0, start - NEAR) : start]) is not None


def is_taken_back(text: str, end: int) -> bool:
    """Return whether the words after index `end`, where an answer ends, take it back."""
    near = text[end : end + NEAR]
    corrected = _CORRECTED.match(near)
    return _TAKEN_BACK.match(near) is not None or (corrected is not None and not _CONFIRMED.search(corrected[0]))


def is_denied_statement(text: str, start: int, end: int) -> bool:
    """Return whether the clause before text[start:end] denies it, or its sentence or the next words take it back."""
    denied = _DENIED.search(_CLAUSE.split(text[max(0, start - NEAR) : start])[-1])
    return bool(denied or is_taken_back(text, end) or _BACK_IN_SENTENCE.match(text[end : end + NEAR]))
