"""Checks that cannot hang, run in the calling process: exact text, Countdown."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from . import countdown
from .verdict import Verdict
from .verifier import Verifier


def exact(response: str, ground_truth: Any) -> Verdict:
    """Return the verdict on equal texts; white space around them is ignored, and 5 is equal to a truth of 5.0.

    Raises:
        ValueError: for a ground truth that is neither text nor a number.
    """
    if isinstance(ground_truth, bool) or not isinstance(ground_truth, str | int | float):
        raise ValueError(
            f"the ground truth of exact is text or a number, not {type(ground_truth).__name__}: give the text that a "
            f'response must be, such as "{ground_truth!s:.40}", or use math or a function of your own'
        )
    texts = [str(ground_truth).strip()]
    if isinstance(ground_truth, float) and ground_truth.is_integer():  # a file may have made it one
        texts.append(f"{ground_truth:.0f}")
    same = response.strip() in texts
    return Verdict(same, "equal" if same else "not equal")


def countdown_check(response: str, ground_truth: Any) -> Verdict:
    """Return the verdict on an expression, alone or in the last <answer></answer>; the truth is {"numbers", "target"}.

    Raises:
        ValueError: for a ground truth without these fields.
    """
    try:
        problem = countdown.Problem(tuple(map(_whole, ground_truth["numbers"])), _whole(ground_truth["target"]))
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f'the ground truth of countdown is {{"numbers": [3, 5], "target": 8}}, not {str(ground_truth)[:80]}'
        ) from None
    tagged = response.rpartition("<answer>")[2].partition("</answer>")[0] if "<answer>" in response else response
    expression = tagged.strip()
    verdict = countdown.verify(problem, expression)
    return replace(verdict, extracted=expression[: countdown.MAX_RESPONSE_CHARS])


def _whole(value: Any) -> int:
    """Return a whole number as int; raise ValueError for 8.5, which int would cut to 8."""
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value} is not a whole number")
    return int(value)


class DirectVerifier(Verifier):
    """Verifier that calls its check in the calling process."""

    def __init__(self, check: Callable[[str, Any], Verdict]) -> None:
        super().__init__()
        self.check = check

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        return [self.check(response, truth) for response, truth in zip(responses, ground_truths, strict=True)]
