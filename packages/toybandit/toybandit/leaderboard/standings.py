"""Standings from rows of runs: means over seeds with percentile bootstrap intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from entrostat.about.lineup import Entry

from ..sweep.measure import Row
from ..trajectory import Array

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 0
ALIKE = 1e-5
"""Largest difference, in nats and reward, between runs that count as equal: smaller than the page can show."""
COMPARED = ("entropy_final", "entropy_held", "reward_final", "gap")
AIMED = ("target_error", "settling")


class Estimate(NamedTuple):
    """Statistic over seeds with its bootstrap interval; infinity means "never"."""

    value: float
    low: float
    high: float


def mean(values: Array) -> Array:
    """Return the mean over the last dimension."""
    return values.mean(-1)


def middle(values: Array) -> Array:
    """Return the lower median over the last dimension: always one of the values, so infinities are allowed."""
    return np.sort(values, -1)[..., (values.shape[-1] - 1) // 2]


def estimate(values: Array, statistic: Callable[[Array], Array] = mean) -> Estimate:
    """Return `statistic` of values (seeds,) with the interval that contains LEVEL of its values on resampled seeds."""
    drawn = np.random.default_rng(SEED).integers(values.size, size=(RESAMPLES, values.size))
    resampled = np.sort(statistic(values[drawn]))
    tail = round((1 - LEVEL) / 2 * (RESAMPLES - 1))
    return Estimate(float(statistic(values)), float(resampled[tail]), float(resampled[-1 - tail]))


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Result of an entry in an environment."""

    entry: Entry
    error: str = ""
    """Reason why the entry could not run; empty if it ran."""
    note: str = ""
    """Warning of the controller."""
    same_as: str = ""
    """Name of an earlier entry whose runs ended with the same numbers, one by one."""
    entropy: Estimate | None = None
    """Entropy of the final policy."""
    target_error: Estimate | None = None
    """|mean entropy over the last third of the rollouts − target|; None without a target."""
    reward: Estimate | None = None
    """Expected reward of the final policy."""
    gap: Estimate | None = None
    """Highest reward possible at the run's own entropy, minus the reward."""
    settling: Estimate | None = None
    """Median over seeds of the rollouts until the entropy stays near the target; None without a target."""


def standings(results: Sequence[tuple[Entry, Sequence[Row]]]) -> list[Standing]:
    """Return standings from each entry's rows, one per seed; highest reward first, failures last."""
    found: list[Standing] = []
    ran: list[tuple[str, dict[str, Array]]] = []
    for entry, rows in results:
        error = next((row["error"] for row in rows if row["error"]), "")
        if error:
            found.append(Standing(entry=entry, error=error))
            continue
        numbers = {
            name: np.array([of_policy(row, name) for row in rows], dtype=np.float64) for name in (*COMPARED, *AIMED)
        }
        twin = next((name for name, others in ran if _same(numbers, others)), "")
        ran.append((entry.name, numbers))
        found.append(_standing(entry, numbers, rows[0]["note"], twin))
    return sorted(found, key=lambda standing: -standing.reward.value if standing.reward else np.inf)


def of_policy(row: Row, name: str) -> float:
    """Return a result of the policy itself, at temperature 1, whatever it was sampled at."""
    own: float | None = row.get(f"{name}_at_1")
    return row[name] if own is None else own


def _standing(entry: Entry, numbers: Mapping[str, Array], note: str, same_as: str) -> Standing:
    return Standing(
        entry=entry,
        note=note,
        same_as=same_as,
        entropy=estimate(numbers["entropy_final"]),
        target_error=estimate(np.abs(numbers["target_error"])) if entry.has_target else None,
        reward=estimate(numbers["reward_final"]),
        gap=estimate(numbers["gap"]),
        settling=estimate(numbers["settling"], middle) if entry.has_target else None,
    )


def _same(numbers: Mapping[str, Array], others: Mapping[str, Array]) -> bool:
    """Return True if the runs of two entries ended with equal numbers."""
    return all(np.allclose(numbers[name], others[name], rtol=0, atol=ALIKE) for name in COMPARED)
