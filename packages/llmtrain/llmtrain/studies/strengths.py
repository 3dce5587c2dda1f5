"""Controllers with several values of one hyperparameter, and their results at a given entropy. Torch-free."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

from .standings import Standing


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Entries that differ only in the value of one hyperparameter."""

    name: str
    """Name of the controller, with the values that all entries share."""
    hyperparameter: str
    standings: tuple[Standing, ...]
    """Standings in ascending order of the value."""

    def value(self, standing: Standing) -> float:
        """Return the hyperparameter's value in an entry."""
        return float(standing.entry.args[self.hyperparameter])


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Interpolated results of a controller at an entropy."""

    curve: Curve
    value: float
    """Interpolated value of the hyperparameter."""
    means: dict[str, float]
    """Interpolated means, by metric."""
    errors: dict[str, float]
    """Standard errors of the means, by metric; NaN with one seed."""


def curves(standings: Iterable[Standing]) -> list[Curve]:
    """Return all curves among the standings, with at least two numeric values each; an entry may be on several."""
    found: defaultdict[tuple[str, str], list[Standing]] = defaultdict(list)
    for s in standings:
        for key, value in s.entry.args.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                others = ", ".join(f"{k}={v}" for k, v in s.entry.args.items() if k != key)
                found[s.entry.controller + (f" ({others})" if others else ""), key].append(s)
    return [
        Curve(name=name, hyperparameter=key, standings=tuple(sorted(group, key=lambda s: float(s.entry.args[key]))))
        for (name, key), group in found.items()
        if len(group) > 1
    ]


def readings(
    found: Iterable[Curve], entropy: float, metrics: Sequence[str], noise: Mapping[str, float]
) -> list[Reading]:
    """Return each curve's results at an entropy (nats), sorted by the first metric, highest first.

    Metrics and the hyperparameter are interpolated linearly in log entropy between the lowest two neighbouring values
    whose entropies enclose it; curves that do not reach it are left out. Errors combine those of both means and both
    entropies. noise: standard errors of a mean, by metric.
    """
    read = [reading for curve in found if (reading := _read(curve, entropy, metrics, noise))]
    return sorted(read, key=lambda reading: -reading.means[metrics[0]])


def _read(curve: Curve, entropy: float, metrics: Sequence[str], noise: Mapping[str, float]) -> Reading | None:
    for pair in pairwise(curve.standings):
        ends = [s.mean("entropy") for s in pair]
        if ends[0] == ends[1] or not 0 < min(ends) <= entropy <= max(ends):
            continue
        share = log(entropy / ends[0]) / log(ends[1] / ends[0])
        weights = np.array([1 - share, share])
        off = noise["entropy"] / np.array(ends)  # standard errors of the log entropies
        means, errors = {}, {}
        for metric in metrics:
            values = np.array([s.mean(metric) for s in pair])
            slope = (values[1] - values[0]) / log(ends[1] / ends[0])
            means[metric] = float(weights @ values)
            errors[metric] = sqrt(float(weights**2 @ (noise[metric] ** 2 + (slope * off) ** 2)))
        value = float(weights @ [curve.value(s) for s in pair])
        return Reading(curve=curve, value=value, means=means, errors=errors)
    return None


def share_of_noise(found: Sequence[Reading], metric: str) -> float:
    """Return the share of the readings' errors in the variance between them; from 1 on they explain all of it.

    NaN for fewer than three readings, and for equal ones without errors.
    """
    if len(found) < 3:
        return float("nan")
    errors = np.array([reading.errors[metric] for reading in found])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((errors**2).mean() / np.var([reading.means[metric] for reading in found], ddof=1))
