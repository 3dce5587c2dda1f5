"""Covariance of log-probability and advantage by difficulty (Entropy Mechanism, figure 12 and Appendix D).

    logp, advantage, question of each token (N,) ─► Cov of each question (Q,) ─► mean over questions of similar accuracy

A question's Cov is the mean over its tokens of (log p − mean log p)·(A − mean A), eq. 8 within the group, as in
section 3.3. To first order, entropy falls if Cov is positive (theorem 2). Torch-free.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Accuracy limits of the groups (our choice): a group contains its upper edge; the first also contains 0."""


@dataclass(frozen=True)
class Group:
    """Questions of similar accuracy."""

    low: float
    high: float
    """Accuracy is in (low, high]; the first group also contains 0."""
    questions: int
    tokens: int
    covariance: float
    """Mean Cov over the questions, in nats times units of advantage; NaN without questions."""


def covariances(
    logp: ArrayLike, advantage: ArrayLike, question: ArrayLike, tokens: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return Cov of log p (N,) and advantage (N,) over the tokens of each question 0..Q−1 (Q,); NaN without tokens.

    tokens: number of tokens that each entry represents (N,), 1 if None. A response whose tokens share one advantage
    can be one entry with their mean log p.
    """
    x, a = np.asarray(logp, dtype=np.float64), np.asarray(advantage, dtype=np.float64)
    owner = np.asarray(question, dtype=np.int64)
    weight = np.ones(len(x)) if tokens is None else np.asarray(tokens, dtype=np.float64)
    if not len(x) == len(a) == len(owner) == len(weight):
        raise ValueError(f"{len(x)} log-probabilities, {len(a)} advantages and {len(owner)} owners do not fit")
    size = np.bincount(owner, weight)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.bincount(owner, weight * values) / size

    return mean((x - mean(x)[owner]) * (a - mean(a)[owner]))


def by_difficulty(covariance: ArrayLike, tokens: ArrayLike, accuracy: ArrayLike) -> list[Group]:
    """Return questions grouped by accuracy, hardest first; all arguments (Q,). Skips questions with covariance NaN."""
    cov, size, share = (np.asarray(x, dtype=np.float64) for x in (covariance, tokens, accuracy))
    known = ~np.isnan(cov)
    place = np.clip(np.searchsorted(EDGES, share, side="left") - 1, 0, len(EDGES) - 2)
    groups = []
    for i, (low, high) in enumerate(pairwise(EDGES)):
        inside = (place == i) & known
        mean = float(cov[inside].mean()) if inside.any() else float("nan")
        groups.append(Group(low, high, int(inside.sum()), int(size[inside].sum()), mean))
    return groups
