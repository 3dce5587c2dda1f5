"""Compare the final answer of a response with the ground truth.

Equal texts and plain numbers are decided here, the rest by math-verify with SymPy, which may take forever: run `check`
in a CheckPool, never in a trainer's process.
"""

from typing import Any

from ..verdict import Verdict
from .answer_text import MAX_ANSWER_CHARS, read_truth, same_text, tidy
from .asked_unit import in_another_unit
from .based_number import same_based
from .final_answer import final_answer
from .math_equal import equal
from .plain_number import same_number, to_be_worked_out
from .size import UndecidedError
from .word_number import counted_as_asked


def check(response: str, ground_truth: Any, question: str = "") -> Verdict:
    """Return the verdict on the final answer of `response`.

    With a question, an answer must also be worked out, see worked_out.py; without one, it must be equal to the truth.

    Args:
        response: Text of a model.
        ground_truth: A number, or text with or without \\boxed{} or ####.
        question: Text of the prompt; "" if it is not known.

    Raises:
        ValueError: for a ground truth that is no text, no number, or empty.
    """
    truth = read_truth(ground_truth)
    answer = final_answer(response, question)
    if answer is None:
        return Verdict(False, "no answer found")
    if len(answer) > MAX_ANSWER_CHARS:
        return Verdict(False, f"the answer has more than {MAX_ANSWER_CHARS} characters", answer)
    given, wanted = (tidy(counted_as_asked(text, question)) for text in (answer, truth))
    if same_text(given, wanted, question):
        return Verdict(True, "equal as text", answer)
    if question and given != wanted and in_another_unit(given, wanted, question):
        return Verdict(False, f"{given} is not in the unit that the question asks for", answer)
    same, how = same_based(given, wanted, question), "equal as numbers"
    if same is None:
        same = same_number(given, wanted, question)
        if same and question and to_be_worked_out(given, wanted, question):
            return Verdict(False, f"{given} is still to be worked out", answer)
    if same is None:
        try:
            same, how = equal(given, wanted, question), "mathematically equal"
            if not same and question and equal(given, wanted):
                return Verdict(False, f"{given} is still to be worked out", answer)
        except UndecidedError as error:
            return Verdict(False, f"undecided: {error}", answer, undecided=True)
    return Verdict(same, how if same else f"{given} is not {wanted}", answer)
