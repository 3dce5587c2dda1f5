"""Standings of runs: means over seeds, noise of a mean, and the part explained by entropy alone. Torch-free.

All entries train the same model with the same seeds, so their seeds vary equally. One variance within entries, pooled
over all of them, estimates the noise far better than the few seeds of one entry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from entrostat.about.lineup import Entry

from .comparison import Run

Array = NDArray[np.float64]
NOTABLE = 3.0
"""Standard errors above which a difference is listed."""
FEWEST = 10
"""Minimum number of entries for a parabola."""
SAME_START = 1e-4
"""Relative difference between entropies of one model before the first step, above which there are two models."""
ALONE = 0.9
"""Leverage above which an entry is left out of the fit: it is so far from the others that the parabola there would
depend almost only on the entry itself."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Results of an entry."""

    entry: Entry
    target: float | None = None
    """Entropy target (nats)."""
    error: str = ""
    """Error of a failed run; empty if all runs finished."""
    same_as: str = ""
    """Name of an earlier entry with exactly the same training, step by step."""
    start: tuple[float, ...] = ()
    """Entropy of the start model's held-out responses for each seed (nats), as evaluated before the first step."""
    values: Mapping[str, Array]
    """Values by metric, (seeds,) each: entropy (nats) and reward over the last third of the steps, avg@k and pass@k of
    the last evaluation, and target_error |entropy − target| if there is a target."""

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over seeds; NaN if it is missing."""
        return float(self.values[metric].mean()) if metric in self.values else float("nan")


def standing(entry: Entry, runs: Sequence[Run], others: Mapping[str, Sequence[Run]]) -> Standing:
    """Return the standing of an entry from its runs, one per seed. others: runs of earlier entries, by name."""
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
    return Standing(entry=entry, target=target, same_as=twin, start=tuple(run.start for run in runs), values=values)


def _same(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    return all(
        np.array_equal(run.series(metric)[1], other.series(metric)[1])
        for run, other in zip(runs, others, strict=True)
        for metric in ("entropy", "reward", "grad_norm")
    )


def of_another_start(standings: Sequence[Standing]) -> set[str]:
    """Return the names of entries whose runs began with another model than those of most entries.

    Entries are compared by the seeds that both have.
    """
    told = [s for s in standings if s.start and np.isfinite(s.start).all()]
    alike = {s.entry.name: {other.entry.name for other in told if _same_start(s, other)} for s in told}
    most = max(alike.values(), key=len, default=set())
    return set(alike) - most


def _same_start(one: Standing, other: Standing) -> bool:
    pairs = zip(one.start, other.start, strict=False)
    return all(abs(a - b) <= SAME_START * abs(b) for a, b in pairs)


def standard_error(standings: Sequence[Standing], metric: str) -> float:
    """Return the standard error of a mean over seeds, from the pooled variance within entries; NaN with one seed.

    Entries with the same training count once.
    """
    found = [s.values[metric] for s in standings if metric in s.values and not s.same_as]
    if not found or found[0].size < 2:
        return float("nan")
    return sqrt(float(np.mean([values.var(ddof=1) for values in found])) / found[0].size)


@dataclass(frozen=True, kw_only=True)
class ByEntropy:
    """Part of a metric explained by entropy alone: a parabola in log entropy, fitted to the means of the entries."""

    metric: str
    coefficients: Array
    explained: float
    """Explained share of variance between entries, each predicted from the others; below 0 worse than their mean."""
    noise: float
    """Share of seed noise in the residual variance; from 1 on it explains all of it. NaN with one seed."""
    apart: Mapping[str, float]
    """Entries more than NOTABLE standard errors from the parabola, by name, with that distance; largest first."""
    left_out: tuple[str, ...]
    """Entries left out of the fit because they are too far from the others."""

    def at(self, entropy: Array) -> Array:
        """Return the parabola at these entropies (nats)."""
        return np.asarray(np.polyval(self.coefficients, np.log(entropy)), dtype=np.float64)


def by_entropy(standings: Sequence[Standing], metric: str) -> ByEntropy | None:
    """Return the fit of a metric to log entropy, or None with fewer than FEWEST different entries.

    `explained` uses for each entry the residual of a fit without it.
    """
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
    coefficients = np.linalg.lstsq(powers, values, rcond=None)[0]
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
    """Return the powers of the log entropies, (n, 3), and the leverages, (n,)."""
    powers = np.vander(np.log([s.mean("entropy") for s in standings]), 3)
    return powers, np.einsum("ij,ji->i", powers, np.linalg.pinv(powers))
