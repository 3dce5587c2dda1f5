"""Responses to a question grouped by answer, for majority voting.

Two answers are equal if they are the same number (`42`, `42.0`, `\\frac{84}{2}`) or the same text without meaningless
markup (`verifiers.answer_text.tidy`). This is stricter than a verifier, but fast: `x+1` and `1+x` are two answers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..verifiers.math.answer_text import MAX_ANSWER_CHARS, compact, tidy
from ..verifiers.math.plain_number import number
from ..verifiers.verdict import Verdict
from .outcomes import ABSTAINED


def ballot(answer: str) -> str:
    """Return the key that equal answers share."""
    if len(answer) > MAX_ANSWER_CHARS:
        return answer
    text = tidy(answer)
    value = number(text)
    return compact(text) if value is None else str(value)


def votes(verdicts: Sequence[Verdict], responses: Sequence[str], n: int) -> NDArray[np.int64]:
    """Return the number of each response's answer (Q, n), from the verdicts (Q·n,) in order of questions.

    If no verdict contains an answer, the whole response is the answer (Countdown, exact). Otherwise responses without
    an answer abstain.
    """
    whole = all(verdict.extracted is None for verdict in verdicts)
    answers = list(responses) if whole else [verdict.extracted for verdict in verdicts]
    numbers: dict[str, int] = {}
    given = [ABSTAINED if answer is None else numbers.setdefault(ballot(answer), len(numbers)) for answer in answers]
    return np.array(given, dtype=np.int64).reshape(-1, n)
