"""Compare the final answer of a response with the ground truth.

Equal texts and plain numbers are decided here, the rest by math-verify with SymPy, which may take forever: run `check`
in a CheckPool, never in a trainer's process.
"""

from typing import Any

from ..verdict import Verdict
from .answer_text import MAX_ANSWER_CHARS, read_truth, same_text, tidy
from .final_answer import final_answer
from .math_equal import equal
from .plain_number import same_number


def check(response: str, ground_truth: Any) -> Verdict:
    """Return the verdict on the final answer of `response`.

    Args:
        response: Text of a model.
        ground_truth: A number, or text with or without \\boxed{} or ####.

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
    if same_text(given, wanted):
        return Verdict(True, "equal as text", answer)
    same, how = same_number(given, wanted), "equal as numbers"
    if same is None:
        same, how = equal(given, wanted), "mathematically equal"
    return Verdict(same, how if same else f"{given} is not {wanted}", answer)
