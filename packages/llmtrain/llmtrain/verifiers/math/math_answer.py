"""Is the final answer of a response mathematically equal to the ground truth?

Equal texts and plain numbers are decided here, what is understood by its value, the rest by SymPy, which may take
forever and whose parser evaluates text: `check` is to run in a CheckPool, never in a trainer's process.
"""

from typing import Any

from ..verdict import Verdict
from .answer_text import MAX_ANSWER_CHARS, choice, compact, number, read_truth, tidy
from .final_answer import final_answer
from .math_equal import equal
from .quick_equal import equal_by_value


def check(response: str, ground_truth: Any) -> Verdict:
    """Verdict on the final answer of `response`; `ground_truth` is a number, or text with or without \\boxed{} or ####.

    Raises:
        ValueError: for a ground truth that is no text, no number, or empty.
    """
    truth = read_truth(ground_truth)
    answer = final_answer(response)
    if answer is None:
        return Verdict(False, "no answer found")
    if len(answer) > MAX_ANSWER_CHARS:
        return Verdict(False, f"the answer has more than {MAX_ANSWER_CHARS} characters", answer)
    given, wanted = tidy(answer), tidy(truth)
    if compact(given) == compact(wanted) or choice(given) == wanted.strip("()"):
        return Verdict(True, "equal as text", answer)
    a, b = number(given), number(wanted)
    if a is not None and b is not None:
        if a == b:
            return Verdict(True, "equal as numbers", answer)
        if a.denominator == b.denominator == 1:
            return Verdict(False, f"{given} is not {wanted}", answer)
    same = equal_by_value(given, wanted)
    if same is None:
        same = equal(given, wanted)
    return Verdict(same, "mathematically equal" if same else f"{given} is not {wanted}", answer)
