"""Training curves of several configurations on the same seeds, as a tidy table of means over runs with a band.

runs = {name: train(effort, controller=name) for name in ("clip_lower", "grpo", "clip_higher")}
table = curves(runs)                          columns series, rollout, entropy, entropy_low, ..., reward_high
runs = sweep(effort, "coef", (0.0, 0.01), controller="entropy_bonus")     one simulation for all the values
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..config import Config
from ..settings import simulate_settings
from ..simulator import simulate
from ..trajectory import Trajectory
from ..uncertainty import Measured, band, mean
from .registry import Effort

STATES, ROLLOUTS = 48, 150
"""Size of a training run at full effort."""
LEAST_STATES, LEAST_ROLLOUTS = 24, 80
"""Smallest training run, at any effort, whose curves still distinguish controllers."""


def size(effort: Effort) -> dict[str, Any]:
    """Return the states and rollouts of a training run at this effort."""
    return {"states": effort.of(STATES, LEAST_STATES), "rollouts": effort.of(ROLLOUTS, LEAST_ROLLOUTS)}


def train(effort: Effort, **changes: Any) -> Trajectory:
    """Train one run for each seed of the effort; `changes` are fields of Config."""
    return simulate(Config(**{**size(effort), **changes}), range(effort.runs))


def sweep(effort: Effort, key: str, values: Sequence[float], **changes: Any) -> dict[str, Trajectory]:
    """Train at each value of the controller's hyperparameter `key`, in one simulation; series are `key = value`."""
    runs = simulate_settings(Config(**{**size(effort), **changes}), {key: values}, range(effort.runs))
    return {f"{key.rpartition('.')[2]} = {value:g}": run for value, run in zip(values, runs, strict=True)}


def curves(runs: Mapping[str, Trajectory], *metrics: str) -> dict[str, np.ndarray]:
    """Return a tidy table, with the rollouts of one trajectory after another as rows.

    Columns: series, rollout, then the mean over runs with its band, `_low` and `_high`, of the entropy, the expected
    reward and the named metrics.
    """
    columns: dict[str, list[np.ndarray]] = {}
    for name, trajectory in runs.items():
        steps = trajectory.reward.shape[1]
        columns.setdefault("series", []).append(np.full(steps, name))
        columns.setdefault("rollout", []).append(np.arange(steps))
        shown = {"entropy": trajectory.entropy[:, :steps], "reward": trajectory.reward}
        shown |= {metric: trajectory.metrics[metric] for metric in metrics}
        for column, values in shown.items():
            for part, numbers in band(column, values).items():
                columns.setdefault(part, []).append(numbers)
    longest = max(len(name) for name in runs)
    return {
        column: np.concatenate(parts).astype(f"U{longest}") if column == "series" else np.concatenate(parts)
        for column, parts in columns.items()
    }


def stack(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Return a tidy table from rows with the same keys; values are numbers, texts, or arrays of one length per row."""
    parts = [dict(zip(row, np.broadcast_arrays(*map(np.asarray, row.values())), strict=True)) for row in rows]
    return {key: np.concatenate([np.atleast_1d(part[key]) for part in parts]) for key in parts[0]}


def headline(runs: Mapping[str, Trajectory]) -> dict[str, Measured]:
    """Return each series' mean over runs and the last third of the rollouts, as NAME/entropy and NAME/reward."""
    return {
        f"{name}/{key}": mean(values)
        for name, trajectory in runs.items()
        for key, values in (("entropy", trajectory.entropy_held), ("reward", trajectory.reward_held))
    }
