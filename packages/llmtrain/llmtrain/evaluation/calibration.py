"""Calibration: log-probabilities of right and wrong responses compared (Revisiting Entropy, 5.3 and figure 2).

    mean log p per token of each response (R,) ─┐
    correct (R,) ───────────────────────────────┴► means, gap, AUROC, ECE, and the two distributions

The log-probability is the model's own (temperature 1), in nats. Torch-free.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE_BINS = 10
"""Bins of equal width from 0 to 1 for the calibration error."""
DENSITY_BINS = 40
"""Bins of the histograms."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Relation of log-probability and correctness; `reason` explains any NaN."""

    right: float
    """Mean log p per token, averaged over right responses (nats)."""
    wrong: float
    """Same average over wrong responses (nats)."""
    gap: float
    """right − wrong (nats); it narrows as training makes a model overconfident."""
    auroc: float
    """Probability that a right response has a higher mean log p than a wrong one; 0.5 is chance level."""
    ece: float
    """Expected calibration error of exp(mean log p) as confidence that the response is right."""
    reason: str = ""
    """Reason for NaN values."""


def calibration(mean_logp: ArrayLike, correct: ArrayLike) -> Calibration:
    """Return the calibration of R responses from the mean log p per token (R,), in nats, and correctness (R,)."""
    logp, is_right = _columns(mean_logp, correct)
    right, wrong = logp[is_right], logp[~is_right]
    means = float(right.mean()) if len(right) else np.nan, float(wrong.mean()) if len(wrong) else np.nan
    both = bool(len(right) and len(wrong))
    return Calibration(
        right=means[0],
        wrong=means[1],
        gap=means[0] - means[1],
        auroc=_auroc(logp, is_right) if both else np.nan,
        ece=calibration_error(np.exp(logp), is_right),
        reason="" if both else f"no response is {'wrong' if len(right) else 'right'}",
    )


def _columns(mean_logp: ArrayLike, correct: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    logp, is_right = np.asarray(mean_logp, dtype=np.float64).ravel(), np.asarray(correct, dtype=bool).ravel()
    if len(logp) != len(is_right) or not len(logp):
        raise ValueError(f"need one log-probability for each outcome; got {len(logp)} for {len(is_right)}")
    return logp, is_right


def _auroc(score: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the share of pairs (positive, negative) in which the positive has the higher score; a tie counts half."""
    from scipy.stats import mannwhitneyu

    above = mannwhitneyu(score[positive], score[~positive], method="asymptotic").statistic
    return float(above / positive.sum() / (~positive).sum())


def calibration_error(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return Σ_b n_b/R · |accuracy_b − confidence_b| over CONFIDENCE_BINS bins (Guo et al. 2017, eq. 3), 0 to 1.

    A bin contains its upper edge; the first bin also contains 0.
    """
    sure, is_right = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    place = np.clip(np.ceil(sure * CONFIDENCE_BINS).astype(int) - 1, 0, CONFIDENCE_BINS - 1)
    return float(np.abs(np.bincount(place, is_right - sure)).sum() / len(sure))


TAIL = 0.005


def densities(mean_logp: ArrayLike, correct: ArrayLike) -> dict[str, list[float]]:
    """Return histograms for figure 2: `edges` (DENSITY_BINS + 1) in nats, and the densities `right` and `wrong`.

    The least likely share TAIL of the responses is counted in the first bin. Without responses a density is all zeros.
    """
    logp, is_right = _columns(mean_logp, correct)
    logp = np.maximum(logp, np.quantile(logp, TAIL))
    edges = np.histogram_bin_edges(logp, bins=DENSITY_BINS)
    width = np.diff(edges)

    def density(x: NDArray[np.float64]) -> list[float]:
        return (np.histogram(x, edges)[0] / (max(len(x), 1) * width)).tolist()

    return {"edges": edges.tolist(), "right": density(logp[is_right]), "wrong": density(logp[~is_right])}
