"""Distributions of response lengths: exponential or log-normal, truncated at the limit.

Exponential: P(length ≥ t) = exp(−t/θ) for t < limit, the rest at the limit. Among all distributions with a given mean
it has the highest entropy, so it assumes nothing except the mean. θ is solved from the mean after truncation,
θ(1 − exp(−limit/θ)).

Log-normal: its tail is longer, so more waits for it. Its median is solved from the mean after truncation.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Protocol


class Drawn(Protocol):
    """Typical lengths of responses, in tokens."""

    def quantiles(self, count: int) -> list[float]:
        """Return the lengths of `count` typical responses, shortest first: the quantiles (i + ½) / count."""

    def longest(self, count: int) -> float:
        """Return the typical length of the longest of `count` responses."""


@dataclass(frozen=True)
class Lengths:
    """Exponential distribution of response lengths, in tokens."""

    mean: float
    limit: float
    """Length of the longest response, above `mean`."""

    def __post_init__(self) -> None:
        if not 0 < self.mean < self.limit:
            raise ValueError(
                f"mean_response_length {self.mean:g} must be below max_response_length {self.limit:g}: raise the limit"
            )

    @property
    def scale(self) -> float:
        """θ; grows without bound as the mean nears the limit."""
        low, high = 0.0, self.limit
        while high * -math.expm1(-self.limit / high) < self.mean and high < 1e9 * self.limit:
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            short = middle * -math.expm1(-self.limit / middle) < self.mean
            low, high = (middle, high) if short else (low, middle)
        return high

    @property
    def cut_share(self) -> float:
        """Share of the responses that are cut at the limit."""
        return math.exp(-self.limit / self.scale)

    @property
    def mean_square(self) -> float:
        """E[length²]."""
        x = self.limit / self.scale
        if x < 1e-6:
            return self.limit**2
        return 2 * self.scale**2 * (-math.expm1(-x) - x * math.exp(-x))

    def quantiles(self, count: int) -> list[float]:
        """Return the lengths of `count` typical responses, shortest first: the quantiles (i + ½) / count."""
        scale = self.scale
        return [min(-scale * math.log1p(-(i + 0.5) / count), self.limit) for i in range(count)]

    def longest(self, count: int) -> float:
        """Return the typical length of the longest of `count` responses."""
        return min(self.scale * math.log(2 * count), self.limit)


@dataclass(frozen=True)
class LogNormalLengths:
    """Log-normal distribution of response lengths, in tokens."""

    mean: float
    limit: float
    """Length of the longest response, above `mean`."""
    tail: float
    """Quantile .99 divided by the median, before truncation; above 1."""

    def quantiles(self, count: int) -> list[float]:
        """Return the lengths of `count` typical responses, shortest first: the quantiles (i + ½) / count."""
        return self._cut(self._median, [(i + 0.5) / count for i in range(count)])

    def longest(self, count: int) -> float:
        """Return the typical length of the longest of `count` responses."""
        return self._cut(self._median, [1 - 0.5 / count])[0]

    @property
    def _median(self) -> float:
        """Median before truncation."""
        places = [(i + 0.5) / 2000 for i in range(2000)]
        low, high = 0.0, self.limit
        while fmean(self._cut(high, places)) < self.mean:
            high *= 2
        for _ in range(50):
            middle = (low + high) / 2
            short = fmean(self._cut(middle, places)) < self.mean
            low, high = (middle, high) if short else (low, middle)
        return high

    def _cut(self, median: float, places: list[float]) -> list[float]:
        normal = NormalDist()
        power = math.log(self.tail) / normal.inv_cdf(0.99)
        return [min(median * math.exp(power * normal.inv_cdf(place)), self.limit) for place in places]
