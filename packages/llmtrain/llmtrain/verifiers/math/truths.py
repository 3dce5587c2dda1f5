"""Ground truths that verifiers can use: a row without one is a bad row, not a wrong answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import regex
from ..by_source import Named
from ..direct import countdown_check, exact
from ..if_eval import instructions
from ..program_cases import cases_of
from ..python_tests import plan_of
from .answer_text import read_truth

Usable = Callable[[Any, str], object]
"""Function of a ground truth and its source that raises ValueError if it cannot be used."""


def anything(ground_truth: Any, source: str = "") -> None:
    """Accept every ground truth."""


def math_truth(ground_truth: Any) -> None:
    """Raise ValueError for a ground truth that is none of mathematics, such as the tests of a program."""
    if isinstance(cases_of(ground_truth), dict):
        raise ValueError(
            "the ground truth of math is text or a number, not an object such as a program's tests: name the verifier "
            "of these rows by their source, as in 'math livecodebench=python'"
        )
    read_truth(ground_truth)


KNOWN: dict[str, Callable[[Any], object]] = {
    "math": math_truth,
    "exact": partial(exact, ""),
    "regex": partial(regex.check, ""),
    "countdown": partial(countdown_check, ""),
    "ifeval": instructions,
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
