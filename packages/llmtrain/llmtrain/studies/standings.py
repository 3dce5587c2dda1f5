"""From runs to standings: means over seeds, the noise of a mean, and what the entropy alone explains. No torch.

All entries train the same model on the same seeds, so that their seeds differ as much: one variance within entries,
pooled over all of them, tells the noise far better than the few seeds of an entry can.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from entrostat.lineup import Entry

from .comparison import Run

Array = NDArray[np.float64]
NOTABLE = 3.0
"""Standard errors from which on a difference is named."""
FEWEST = 10
"""Entries that a parabola is laid through."""
ALONE = 0.9
"""Share of what the parabola says of an entry that is its own value, from which on it is left out: too far from others
for them to say anything of it."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What came of an entry."""

    entry: Entry
    target: float | None = None
    """Entropy that it was to hold (nats)."""
    error: str = ""
    """Why a run of it could not end; empty when all did."""
    same_as: str = ""
    """Name of an earlier entry that was trained in exactly the same way, step by step."""
    values: Mapping[str, Array]
    """By metric, (seeds,) each: entropy (nats) and reward over the last third of the steps, avg@k and pass@k of the
    last evaluation, target_error |entropy − target| where there is a target."""

    def mean(self, metric: str) -> float:
        """NaN where there is none."""
        return float(self.values[metric].mean()) if metric in self.values else float("nan")


def standing(entry: Entry, runs: Sequence[Run], others: Mapping[str, Sequence[Run]]) -> Standing:
    """That of an entry from its runs, one a seed. others: runs of the entries before it, by name."""
    target = runs[0].target if entry.has_target else None
    k = runs[0].k
    values = {
        "entropy": np.array([run.late("entropy") for run in runs]),
        "reward": np.array([run.late("reward") for run in runs]),
        f"avg@{k}": np.array([run.last(f"eval/avg@{k}") for run in runs]),
        f"pass@{k}": np.array([run.last(f"eval/pass@{k}") for run in runs]),
    }
    if target is not None:
        values["target_error"] = np.abs(values["entropy"] - target)
    twin = next((name for name, found in others.items() if _same(runs, found)), "")
    return Standing(entry=entry, target=target, same_as=twin, values=values)


def _same(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    return all(
        np.array_equal(run.series(metric)[1], other.series(metric)[1])
        for run, other in zip(runs, others, strict=True)
        for metric in ("entropy", "reward", "grad_norm")
    )


def standard_error(standings: Sequence[Standing], metric: str) -> float:
    """Of a mean over seeds, from the variance within entries, pooled; NaN with one seed. Twins count once."""
    found = [s.values[metric] for s in standings if metric in s.values and not s.same_as]
    if not found or found[0].size < 2:
        return float("nan")
    return sqrt(float(np.mean([values.var(ddof=1) for values in found])) / found[0].size)


@dataclass(frozen=True, kw_only=True)
class ByEntropy:
    """What the entropy alone explains of a metric: a parabola in its logarithm through the means of the entries."""

    metric: str
    coefficients: Array
    explained: float
    """Share of the variance between entries, each predicted from the others; below 0: worse than their mean."""
    noise: float
    """Share of what is left that the noise of the seeds makes up; 1 or more: nothing else is left. NaN with a seed."""
    apart: Mapping[str, float]
    """Entries further than NOTABLE standard errors from it, by name, and how far; largest first."""
    left_out: tuple[str, ...]
    """Entries that it is not laid through, as they lie alone."""

    def at(self, entropy: Array) -> Array:
        return np.asarray(np.polyval(self.coefficients, np.log(entropy)), dtype=np.float64)


def by_entropy(standings: Sequence[Standing], metric: str) -> ByEntropy | None:
    """None with fewer than FEWEST entries that differ. Residuals are those of a fit without the entry itself."""
    counted = [s for s in standings if not s.same_as and s.mean("entropy") > 0 and np.isfinite(s.mean(metric))]
    if len(counted) < FEWEST:
        return None
    powers, leverage = _parabola(counted)
    left_out = []
    while leverage.max() > ALONE:
        left_out.append(counted.pop(int(leverage.argmax())).entry.name)
        if len(counted) < FEWEST:
            return None
        powers, leverage = _parabola(counted)
    values = np.array([s.mean(metric) for s in counted])
    coefficients = np.linalg.lstsq(powers, values)[0]
    residual = values - powers @ coefficients
    predicted, mean = residual / (1 - leverage), (values - values.mean()) / (1 - 1 / len(counted))
    noise = standard_error(counted, metric)
    distance = residual / np.sqrt(1 - leverage) / noise
    apart = {s.entry.name: float(x) for s, x in zip(counted, distance, strict=True) if abs(x) > NOTABLE}
    return ByEntropy(
        metric=metric,
        coefficients=coefficients,
        explained=float(1 - (predicted**2).sum() / (mean**2).sum()),
        noise=noise**2 * (len(counted) - 3) / float((residual**2).sum()),
        apart=dict(sorted(apart.items(), key=lambda item: -abs(item[1]))),
        left_out=tuple(left_out),
    )


def _parabola(standings: Sequence[Standing]) -> tuple[Array, Array]:
    """Powers of the log entropies, (n, 3), and leverages, (n,)."""
    powers = np.vander(np.log([s.mean("entropy") for s in standings]), 3)
    return powers, np.einsum("ij,ji->i", powers, np.linalg.pinv(powers))
