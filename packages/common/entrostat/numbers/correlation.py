"""Correlations of two columns.

pearson(estimate, truth)     linear correlation
spearman(estimate, truth)    correlation of the ranks
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return Pearson's r; NaN if a column is constant."""
    a, b = (np.asarray(column, dtype=np.float64).ravel() for column in (x, y))
    if np.ptp(a) == 0 or np.ptp(b) == 0:  # the mean of a constant column is rounded: its deviations need not be 0
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    spread = np.sqrt(a @ a) * np.sqrt(b @ b)
    return float(a @ b / spread) if spread > 0 else float("nan")


def ranks(x: ArrayLike) -> NDArray[np.float64]:
    """Return ranks from 0; ties share their mean rank."""
    _, inverse, counts = np.unique(np.ravel(x), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's ρ; ties share their mean rank; NaN if a column is constant."""
    return pearson(ranks(x), ranks(y))
