"""Scores from the n samples of each question: avg@k, pass@k, maj@k, and confidence intervals over questions.

    correct (Q, n) ─► avg@k, pass@k           ─┐
    votes (Q, n) ───► maj@k (with correct)    ─┴► (Q,) ─► interval ─► mean and its 95% bootstrap interval

Each score is one number per question, so that the bootstrap can resample questions. Torch-free.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

ABSTAINED = -1
"""Vote of a response without an answer."""
SUBSETS = 1000
"""Upper limit for the subsets of k of n samples over which maj@k is averaged."""
RESAMPLES = 2000
"""Bootstrap resamples of the questions for an interval."""


class Interval(NamedTuple):
    """Mean over questions with its 95% bootstrap interval."""

    mean: float
    low: float
    high: float


def outcomes(correct: ArrayLike | Sequence[Sequence[bool]], k: int) -> NDArray[np.bool_]:
    """Return the outcomes (Q, n) as an array. Raises ValueError unless all questions have equal n >= k >= 1 samples."""
    try:
        found = np.asarray(correct, dtype=bool)
    except ValueError:
        lengths = sorted({len(row) for row in correct})  # type: ignore[arg-type, union-attr]
        raise ValueError(f"questions have unequal numbers of samples, {lengths[0]} to {lengths[-1]}") from None
    if found.ndim != 2 or len(found) == 0 or not 1 <= k <= found.shape[1]:
        raise ValueError(
            f"need outcomes of shape (questions >= 1, samples >= k) and k >= 1; got shape {found.shape}, k={k}"
        )
    return found


def avg_at_k(correct: ArrayLike, k: int) -> Numbers:
    """Return the share of correct outcomes among the first k samples of each question: (Q, n) to (Q,)."""
    return outcomes(correct, k)[:, :k].mean(axis=1)


def pass_at_k(correct: ArrayLike, k: int) -> Numbers:
    """Return unbiased pass@k of each question, `1 − C(n−c, k) / C(n, k)` (Chen et al. 2021, eq. 1): (Q, n) to (Q,).

    Args:
        correct: outcome of each sample (Q, n).
        k: draws without replacement from the n samples of a question.

    Raises:
        ValueError: unless `correct` has two dimensions, at least one question, and 1 <= k <= n.
    """
    found = outcomes(correct, k)
    n, wrong = found.shape[1], (~found).sum(axis=1)
    # C(n−c, k) / C(n, k) = Π_{i=n−c+1}^{n} (1 − k/i); a factor is 0 as soon as fewer than k samples are wrong.
    i = np.arange(1, n + 1)
    factors = np.where(i > wrong[:, None], np.maximum(1.0 - k / i, 0.0), 1.0)
    return 1.0 - factors.prod(axis=1)


def maj_at_k(correct: ArrayLike, votes: ArrayLike, k: int, seed: int = 0) -> Numbers:
    """Return the accuracy of the majority answer of k samples (self-consistency, Wang et al. 2022): (Q, n) to (Q,).

    It is averaged over subsets of k of the n samples, and ties are broken at random. All subsets are used, or SUBSETS
    random ones drawn from `seed`, the same for every question. If no sample votes, the answer is wrong; equal answers
    with different verdicts count by their share of correct ones.

    Args:
        correct: outcome of each sample (Q, n).
        votes: number of each sample's answer (Q, n), equal for equal answers to a question; ABSTAINED for no answer.
    """
    found, ballots = outcomes(correct, k), np.asarray(votes)
    if ballots.shape != found.shape:
        raise ValueError(f"votes have shape {ballots.shape}, outcomes {found.shape}")
    taken = _subsets(found.shape[1], k, seed)
    return np.array([_majority(row, vote, taken) for row, vote in zip(found, ballots, strict=True)])


def _majority(correct: NDArray[np.bool_], votes: NDArray, taken: Numbers) -> float:
    """Return maj@k of one question from outcomes (n,), votes (n,) and the 0/1 masks of S subsets (S, n)."""
    answers = np.unique(votes[votes != ABSTAINED])
    if not len(answers):
        return 0.0
    gives = (votes[:, None] == answers).astype(np.float64)
    right = correct @ gives / gives.sum(axis=0)
    counts = taken @ gives
    most = counts.max(axis=1, keepdims=True)
    wins = (counts == most) & (most > 0)
    return float((wins @ right / np.maximum(wins.sum(axis=1), 1)).mean())


def _subsets(n: int, k: int, seed: int) -> Numbers:
    """Return the 0/1 masks of S subsets of k of n samples: (S, n)."""
    if comb(n, k) <= SUBSETS:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        chosen = np.random.default_rng(seed % 2**64).random((SUBSETS, n)).argsort(axis=1)[:, :k]
    taken = np.zeros((len(chosen), n))
    np.put_along_axis(taken, chosen, 1.0, axis=1)
    return taken


def interval(values: ArrayLike, seed: int = 0) -> Interval:
    """Return the mean of `values` (Q,) and its 95% percentile bootstrap interval over questions (Efron 1979).

    Questions without a value (NaN) are left out; all three numbers are NaN if no question has a value.
    """
    found = np.asarray(values, dtype=np.float64)
    found = found[~np.isnan(found)]
    if not len(found):
        return Interval(np.nan, np.nan, np.nan)
    drawn = np.random.default_rng(seed % 2**64).integers(len(found), size=(RESAMPLES, len(found)))
    low, high = np.quantile(found[drawn].mean(axis=1), (0.025, 0.975))
    return Interval(float(found.mean()), float(low), float(high))
