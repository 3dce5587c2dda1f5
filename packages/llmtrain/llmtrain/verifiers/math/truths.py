"""Ground truths that verifiers can use: a row without one is a bad row, not a wrong answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import regex
from ..by_source import Named
from ..direct import countdown_check
from ..python_tests import plan_of
from .answer_text import read_truth

Usable = Callable[[Any, str], object]
"""Function of a ground truth and its source that raises ValueError if it cannot be used."""


def anything(ground_truth: Any, source: str = "") -> None:
    """Accept every ground truth."""


KNOWN: dict[str, Callable[[Any], object]] = {
    "math": read_truth,
    "regex": partial(regex.check, ""),
    "countdown": partial(countdown_check, ""),
    "python": plan_of,
}
"""Functions that raise ValueError for an unusable ground truth, by verifier."""


def usable(verifier: str) -> Usable:
    """Return a function that raises ValueError for a ground truth that its verifier cannot use.

    verifier: name of one, or also those of single sources, see `by_source`.
    """
    named = Named.of(verifier)

    def check(ground_truth: Any, source: str) -> None:
        KNOWN.get(named.of_source(source), anything)(ground_truth)

    return check
