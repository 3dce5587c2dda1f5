"""Polynomials by least squares, which a law has to beat, and how well a curve fits."""

import numpy as np

from ..trajectory import Array


def polynomial(x: Array, y: Array, degree: int) -> Array:
    """The least-squares polynomial through (x, y), at x."""
    return np.asarray(np.polyval(np.polyfit(x, y, degree), x), dtype=np.float64)


def r_squared(y: Array, fitted: Array) -> float:
    """Share of the variance of y that is explained."""
    return float(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum())
