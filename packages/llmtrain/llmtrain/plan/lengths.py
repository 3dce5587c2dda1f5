"""Distribution of response lengths: exponential, truncated at the limit.

P(length ≥ t) = exp(−t/θ) for t < limit, the rest at the limit. Among all distributions with a given mean the
exponential has the highest entropy, so it assumes nothing except the mean. θ is solved from the mean after
truncation, θ(1 − exp(−limit/θ)).
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Lengths:
    """Distribution of response lengths, in tokens."""

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
