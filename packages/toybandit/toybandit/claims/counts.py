"""Counts of runs, for outcomes that are one of two: a mean ± an error would describe no run."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Z = 1.96
"""Normal quantile of a 95% interval."""


class Count(NamedTuple):
    """Runs with an outcome."""

    some: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the probability of the outcome (Wilson 1927)."""
        share, n = self.some / self.total, self.total
        centre, spread = share + Z**2 / (2 * n), Z * sqrt(share * (1 - share) / n + (Z / (2 * n)) ** 2)
        low, high = ((centre + sign * spread) / (1 + Z**2 / n) for sign in (-1, 1))
        return max(low, 0.0), min(high, 1.0)

    @property
    def doubt(self) -> float:
        """Upper bound of the probability that as many fresh runs are all of the other outcome, if some are not here;
        else of the probability that one of them has the outcome."""
        low, high = self.interval
        return float((1 - low) ** self.total) if self.some else float(1 - (1 - high) ** self.total)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.some} of {self.total} runs (95%: {low:.0%} to {high:.0%})"


def count(outcome: NDArray[np.bool_]) -> Count:
    """Return the number of runs with an outcome, bool (runs,)."""
    return Count(int(outcome.sum()), outcome.size)
