"""Differences between entries and a baseline, with intervals that hold for all entries together.

Runs of one seed part after a few updates, so seeds are not paired. The variance between seeds is pooled over all
entries, which train the same model; an entry may have fewer seeds than another, or one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from .comparison import Run
from .standings import Standing

CONFIDENCE = 0.95
HIGHER, LOWER, ALIKE = "higher", "lower", "cannot be told apart"


@dataclass(frozen=True)
class Difference:
    """Difference of a metric's mean between an entry and the baseline."""

    mean: float
    half: float
    """Half the width of its interval."""
    seeds: int
    """Seeds for each of the two with which a difference of this size would be told apart."""

    @property
    def interval(self) -> tuple[float, float]:
        return self.mean - self.half, self.mean + self.half

    @property
    def verdict(self) -> str:
        """HIGHER or LOWER if the interval leaves out 0, else ALIKE."""
        if abs(self.mean) <= self.half:
            return ALIKE
        return HIGHER if self.mean > 0 else LOWER


def differences(
    standings: Sequence[Standing], baseline: str, metric: str, comparisons: int | None = None
) -> dict[str, Difference]:
    """Return the difference of each entry from the entry named `baseline`, by the entry's name.

    As many intervals as there are `comparisons`, by default all of these, contain the true differences with
    probability CONFIDENCE together (Student's t, divided by their number as Bonferroni does). Entries with the same
    training as another count once and are left out. Raises ValueError if no entry has two seeds, or there is no such
    baseline.
    """
    from scipy.special import stdtrit

    counted = {s.entry.name: s.values[metric] for s in standings if metric in s.values and not s.same_as}
    if baseline not in counted:
        raise ValueError(f"no run of the baseline {baseline}: there are {', '.join(counted) or 'none'}")
    freedom = sum(values.size - 1 for values in counted.values())
    if not freedom:
        raise ValueError("differences need at least two seeds of an entry")
    squares = sum(float(np.square(values - values.mean()).sum()) for values in counted.values())
    variance = squares / freedom
    plain = counted.pop(baseline)
    width = float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / (comparisons or max(len(counted), 1))))
    found = {}
    for name, values in counted.items():
        mean = float(values.mean() - plain.mean())
        half = width * sqrt(variance * (1 / values.size + 1 / plain.size))
        needed = ceil(2 * variance * (width / mean) ** 2) if mean else 0
        found[name] = Difference(mean, half, needed)
    return found


def curve(runs: Sequence[Run], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps at which all runs logged a metric, (n,), and its values, (runs, n)."""
    series = [dict(zip(*map(list, run.series(metric)), strict=True)) for run in runs]
    steps = sorted(set.intersection(*(set(one) for one in series)))
    return np.array(steps), np.array([[one[step] for step in steps] for one in series])


def crossing(runs: Sequence[Run], baseline: Sequence[Run], metric: str) -> int | None:
    """Return the first logged step from which the mean over runs stays above the baseline's; None if it ends below."""
    steps, values = curve(runs, metric)
    at, others = curve(baseline, metric)
    both, here, there = np.intersect1d(steps, at, return_indices=True)
    above = values.mean(0)[here] > others.mean(0)[there]
    if not len(above) or not above[-1]:
        return None
    below = np.flatnonzero(~above)
    return int(both[below[-1] + 1 if len(below) else 0])
