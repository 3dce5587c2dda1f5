"""Ground truths that verifiers can use: a row without one is a bad row, not a wrong answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import regex
from ..direct import countdown_check
from ..python_tests import plan_of
from .answer_text import read_truth

Usable = Callable[[Any], object]


def anything(ground_truth: Any) -> None:
    """Accept every ground truth."""


KNOWN: dict[str, Usable] = {
    "math": read_truth,
    "regex": partial(regex.check, ""),
    "countdown": partial(countdown_check, ""),
    "python": plan_of,
}
"""Functions that raise ValueError for an unusable ground truth, by verifier."""


def usable(verifier: str) -> Usable:
    """Return a function that raises ValueError for a ground truth that the verifier of this name cannot use."""
    return KNOWN.get(verifier, anything)
