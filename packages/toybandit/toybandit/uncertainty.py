"""Numbers with standard errors over independent runs.

    mean(run.entropy_held)                        0.353 ± 0.004
    jackknife(statistic, entropy, reward)         numbers of all runs together, such as the coefficients of a fit

`samples` have the runs as their first axis. Settings share their seeds, so runs are compared in pairs.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
FACTOR = 2.0
"""Standard errors from a mean to the end of its band, and between settings that count as different."""


class Measured(float):
    """Number with its standard error, formatted as `0.60 ± 0.02`, or `0.60 ± <0.01`; arithmetic gives plain floats."""

    error: float

    def __new__(cls, value: float, error: float) -> "Measured":
        number = super().__new__(cls, value)
        number.error = error
        return number

    def __format__(self, spec: str) -> str:
        value = format(float(self), spec)
        if not np.isfinite(self.error):
            return value
        error = format(self.error, spec.lstrip("+"))
        if self.error > 0 and not error.strip("0.%"):
            error = "<" + re.sub(r"0(%?)$", r"1\1", error)
        return f"{value} ± {error}"


def mean(values: ArrayLike) -> Measured:
    """Return the mean of a number for each run, (runs,), with its standard error."""
    values = np.asarray(values, dtype=np.float64)
    return Measured(float(values.mean()), float(errors(values)))


def errors(values: ArrayLike) -> Array:
    """Return the standard error of the mean over the first axis; NaN for one run."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(0, ddof=1) / sqrt(len(values)))


def jackknife(statistic: Callable[..., Mapping[str, float]], *samples: Array) -> dict[str, Measured]:
    """Return the numbers of a statistic of all runs, with standard errors from leaving out one run at a time.

    √((n − 1)/n·Σ(θ_i − θ̄)²), θ_i without run i (Tukey 1958); for a mean it is the usual standard error.
    """
    runs = len(samples[0])
    partial = [statistic(*(np.delete(sample, run, 0) for sample in samples)) for run in range(runs)]
    return {
        name: Measured(float(value), sqrt((runs - 1) * float(np.var([numbers[name] for numbers in partial]))))
        for name, value in statistic(*samples).items()
    }


def band(name: str, values: Array) -> dict[str, Array]:
    """Return columns of a table: the mean over the first axis, and `_low` and `_high`, FACTOR standard errors away."""
    center, error = values.mean(0), FACTOR * errors(values)
    return {name: center, f"{name}_low": center - error, f"{name}_high": center + error}


def apart(values: Array, others: Array) -> bool:
    """Return True if the paired difference over runs exceeds FACTOR of its standard errors."""
    difference = mean(values - others)
    return abs(difference) > FACTOR * difference.error


def ordered(series: Mapping[str, Array], spec: str) -> str:
    """Return names with their means, smallest first, joined by < if the neighbours are `apart`, else by ≈."""
    order = sorted(series, key=lambda name: float(series[name].mean()))
    signs = [" < " if apart(series[a], series[b]) else " ≈ " for a, b in pairwise(order)]
    return "".join(f"{name} {mean(series[name]):{spec}}{sign}" for name, sign in zip(order, [*signs, ""], strict=True))


def highest(series: Mapping[str, Array]) -> list[str]:
    """Return the name of the largest mean, then the names that are not `apart` from it, in order of appearance."""
    best = max(series, key=lambda name: float(series[name].mean()))
    return [best, *(name for name in series if name != best and not apart(series[best], series[name]))]
