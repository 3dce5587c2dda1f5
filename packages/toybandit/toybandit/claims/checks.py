"""Comparisons of measurements with predictions, and the probability that fresh runs contradict them.

A number of a sampled environment is an array with a value for each run. Runs of two settings share their seeds, so
settings are compared by the differences of their runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import atan2, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from .registry import judge

Values = NDArray[np.float64]
"""One number for each run, (runs,)."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Check:
    """Outcome of a comparison; `a & b` holds if both hold."""

    holds: bool
    doubt: float = 0.0
    """Probability that as many fresh runs give the other outcome, or an upper bound; 0 without randomness."""

    def __and__(self, other: "Check") -> "Check":
        if self.holds and other.holds:
            return Check(True, min(self.doubt + other.doubt, 1.0))
        return Check(False, min(check.doubt for check in (self, other) if not check.holds))


def every(checks: Iterable[Check]) -> Check:
    """Return the check that all `checks` hold."""
    return reduce(Check.__and__, checks, Check(True))


def settle(stated: Check, condition: str | None = None, under_condition: Check = Check(False)) -> tuple[str, float]:
    """Return the verdict of `judge`, and an upper bound of the probability that fresh runs give another."""
    verdict = judge(stated.holds, condition, under_condition.holds)
    return verdict, min(stated.doubt + (0.0 if stated.holds else under_condition.doubt), 1.0)


def standard_error(values: Values) -> float:
    """Return the standard error of the mean over runs."""
    return float(values.std(ddof=1) / sqrt(len(values)))


def clearance(values: Values, bound: float = 0.0) -> float:
    """Return the distance of the mean over runs from `bound` in standard errors; without any, ∞, or 0 at the bound."""
    distance, error = abs(float(values.mean()) - bound), standard_error(values)
    return distance / error if error > 0 else (inf if distance else 0.0)


def above(values: Values, bound: float = 0.0) -> Check:
    """Return the check that the mean over runs is above `bound`.

    The mean of as many fresh runs differs from the measured mean by √2 standard errors times Student's t.
    """
    return Check(float(values.mean()) > bound, student_tail(clearance(values, bound) / sqrt(2), len(values) - 1))


def below(values: Values, bound: float = 0.0) -> Check:
    """Return the check that the mean over runs is below `bound`."""
    return above(-values, -bound)


def between(values: Values, low: float, high: float) -> Check:
    """Return the check that the mean over runs is between `low` and `high`."""
    return above(values, low) & below(values, high)


def rising(*series: Values) -> Check:
    """Return the check that each setting's mean over runs is above the one before; runs are paired."""
    return every(above(later - earlier) for earlier, later in pairwise(series))


def student_tail(t: float, degrees: int) -> float:
    """Return P(T > t), t ≥ 0, of Student's t with n = `degrees`: ∫ sinⁿ⁻¹ up to arctan(√n/t), divided by ∫ up to π."""

    def integral(end: float) -> float:
        return float((_WEIGHTS * np.sin((1 + _NODES) * end / 2) ** (degrees - 1)).sum() * end / 2)

    return integral(atan2(sqrt(degrees), t)) / integral(np.pi) if t < inf else 0.0


def told(values: Values, digits: int = 3) -> str:
    """Return mean ± standard error as text."""
    return f"{values.mean():.{digits}f} ± {standard_error(values):.{digits}f}"


def numbers_of(series: dict[str, Values]) -> dict[str, float]:
    """Return the mean and standard error of each series as numbers."""
    found = {}
    for name, values in series.items():
        found[name] = float(values.mean())
        found[f"{name}, standard error"] = standard_error(values)
    return found
