"""Spearman's ρ between entropy and performance (Revisiting Entropy, table 1 and C.3).

    metrics.jsonl of a run ─► entropy and scores at its evaluations ─► ρ for each source and score
    prompt entropy and accuracy of each question ─► ρ over questions

Torch-free.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_SCORE = re.compile(r"eval/(?:(?P<source>.+)/)?(?P<score>(?:avg|pass|maj)@\d+)")
LEAST = 3
"""Minimum number of points for a correlation."""


@dataclass(frozen=True)
class Correlation:
    """ρ between entropy and a score over the evaluations of a run."""

    source: str
    """Benchmark; empty for all benchmarks together."""
    score: str
    """Name of the score, such as avg@8."""
    points: int
    spearman: float
    """NaN if entropy or the score never changes, or with fewer than LEAST points."""


def spearman(entropy: ArrayLike, score: ArrayLike) -> float:
    """Return Spearman's ρ over the pairs without NaN; NaN with fewer than LEAST of them."""
    from entrostat.numbers.correlation import spearman as rho

    x, y = np.asarray(entropy, dtype=np.float64), np.asarray(score, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    return rho(x[known], y[known]) if known.sum() >= LEAST else float("nan")


def over_run(metrics: Sequence[Mapping[str, Any]]) -> list[Correlation]:
    """Return table 1 for a run log: one row for each source and score that was evaluated.

    metrics: lines of metrics.jsonl, with `step`, `entropy` and `eval/...`. An evaluation uses the weights that its
    step samples with; if its line has no entropy (the last one), the entropy of the nearest step is used.
    """
    entropy = {line["step"]: line["entropy"] for line in metrics if line.get("entropy") is not None}
    if not entropy:
        raise ValueError("the run has logged no entropy")
    steps = np.array(list(entropy))
    values = np.array(list(entropy.values()), dtype=np.float64)
    names = sorted({key for line in metrics for key in line if _SCORE.fullmatch(key)})
    found = []
    for name in names:
        pairs = [(line["step"], line[name]) for line in metrics if line.get(name) is not None]
        nearest = [int(np.abs(steps - step).argmin()) for step, _ in pairs]
        parts = _SCORE.fullmatch(name)
        assert parts
        rho = spearman(values[nearest], [score for _, score in pairs])
        found.append(Correlation(parts["source"] or "", parts["score"], len(pairs), rho))
    return found
