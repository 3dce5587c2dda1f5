"""What is right among the n samples of each question: avg@k, pass@k, maj@k, and how sure a mean over questions is.

    correct (Q, n) ─► avg@k, pass@k           ─┐
    votes (Q, n) ───► maj@k (with correct)    ─┴► (Q,) ─► interval ─► mean and its 95% bootstrap interval

Each gives one number a question, so that the questions can be drawn again. Torch-free.
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
"""Subsets of k of n samples over which maj@k is averaged where there are more."""
RESAMPLES = 2000
"""Times the questions are drawn again for an interval."""


class Interval(NamedTuple):
    """A mean over questions, and where 95% of the means of questions drawn again lie."""

    mean: float
    low: float
    high: float


def outcomes(correct: ArrayLike | Sequence[Sequence[bool]], k: int) -> NDArray[np.bool_]:
    """The outcomes (Q, n) as an array; ValueError unless all questions have the same n >= k >= 1 samples."""
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
    """Share of correct outcomes among the first k samples of each question: (Q, n) to (Q,)."""
    return outcomes(correct, k)[:, :k].mean(axis=1)


def pass_at_k(correct: ArrayLike, k: int) -> Numbers:
    """Unbiased pass@k of each question, `1 − C(n−c, k) / C(n, k)` (Chen et al. 2021, eq. 1): (Q, n) to (Q,).

    Args:
        correct: outcome of each sample (Q, n).
        k: draws without replacement from the n samples of a question.

    Raises:
        ValueError: unless `correct` has two dimensions, a question, and 1 <= k <= n.
    """
    found = outcomes(correct, k)
    n, wrong = found.shape[1], (~found).sum(axis=1)
    # C(n−c, k) / C(n, k) = Π_{i=n−c+1}^{n} (1 − k/i); a factor is 0 as soon as fewer than k samples are wrong.
    i = np.arange(1, n + 1)
    factors = np.where(i > wrong[:, None], np.maximum(1.0 - k / i, 0.0), 1.0)
    return 1.0 - factors.prod(axis=1)


def maj_at_k(correct: ArrayLike, votes: ArrayLike, k: int, seed: int = 0) -> Numbers:
    """Accuracy of the answer that most of k samples give (self-consistency, Wang et al. 2022): (Q, n) to (Q,).

    Expected over which k of the n samples are taken and over a fair draw among answers with equally many votes. The
    subsets are all there are, or SUBSETS of them drawn from `seed`, the same for every question. Where nobody votes
    the answer is wrong; equal answers that were judged differently count by their share of correct ones.

    Args:
        correct: outcome of each sample (Q, n).
        votes: number of the answer of each sample (Q, n), equal for equal answers of a question; ABSTAINED has none.
    """
    found, ballots = outcomes(correct, k), np.asarray(votes)
    if ballots.shape != found.shape:
        raise ValueError(f"votes have shape {ballots.shape}, outcomes {found.shape}")
    taken = _subsets(found.shape[1], k, seed)
    return np.array([_majority(row, vote, taken) for row, vote in zip(found, ballots, strict=True)])


def _majority(correct: NDArray[np.bool_], votes: NDArray, taken: Numbers) -> float:
    """Of one question: outcomes (n,), votes (n,), and which samples each of S subsets takes (S, n), as 0 and 1."""
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
    """Which of n samples each subset of k takes, as 0 and 1: (S, n)."""
    if comb(n, k) <= SUBSETS:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        chosen = np.random.default_rng(seed % 2**64).random((SUBSETS, n)).argsort(axis=1)[:, :k]
    taken = np.zeros((len(chosen), n))
    np.put_along_axis(taken, chosen, 1.0, axis=1)
    return taken


def interval(values: ArrayLike, seed: int = 0) -> Interval:
    """The mean of `values` (Q,) and its 95% percentile bootstrap interval over questions (Efron 1979).

    Questions without a value (NaN) are left out; all three numbers are NaN when none has one.
    """
    found = np.asarray(values, dtype=np.float64)
    found = found[~np.isnan(found)]
    if not len(found):
        return Interval(np.nan, np.nan, np.nan)
    drawn = np.random.default_rng(seed % 2**64).integers(len(found), size=(RESAMPLES, len(found)))
    low, high = np.quantile(found[drawn].mean(axis=1), (0.025, 0.975))
    return Interval(float(found.mean()), float(low), float(high))
