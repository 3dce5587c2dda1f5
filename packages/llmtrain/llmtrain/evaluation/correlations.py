"""Does entropy go with performance? Spearman's ρ (Revisiting Entropy, table 1 and C.3).

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
"""Points below which a correlation says nothing."""


@dataclass(frozen=True)
class Correlation:
    """ρ of entropy and a score over the evaluations of a run."""

    source: str
    """Benchmark; empty for all together."""
    score: str
    """Such as avg@8."""
    points: int
    spearman: float
    """NaN where entropy or the score never changes, or with fewer than LEAST points."""


def spearman(entropy: ArrayLike, score: ArrayLike) -> float:
    """Spearman's ρ over the pairs in which both are known; NaN with fewer than LEAST of them."""
    from entrostat.correlation import spearman as rho

    x, y = np.asarray(entropy, dtype=np.float64), np.asarray(score, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    return rho(x[known], y[known]) if known.sum() >= LEAST else float("nan")


def over_run(metrics: Sequence[Mapping[str, Any]]) -> list[Correlation]:
    """Table 1 for a run log: one row for each source and score that was evaluated.

    metrics: lines of metrics.jsonl, with `step`, `entropy` and `eval/...`. An evaluation is of the weights that its
    step samples with; where its line has no entropy (the last one), that of the nearest step stands for it.
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
