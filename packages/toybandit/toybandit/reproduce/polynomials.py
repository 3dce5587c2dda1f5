"""Least-squares polynomials, which a law has to beat, and the quality of a fit."""

import numpy as np

from ..trajectory import Array


def polynomial(x: Array, y: Array, degree: int) -> Array:
    """Return the values at x of the least-squares polynomial through (x, y)."""
    return np.asarray(np.polyval(np.polyfit(x, y, degree), x), dtype=np.float64)


def r_squared(y: Array, fitted: Array) -> float:
    """Return the share of the variance of y that the fit explains."""
    return float(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum())
