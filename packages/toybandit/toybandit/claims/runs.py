"""Simulations for claims about sampled environments, large enough for clear orderings within seconds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..config import Config
from ..settings import simulate_settings
from ..simulator import simulate
from ..trajectory import Array, Trajectory
from .registry import Effort


def sized(effort: Effort, config: Mapping[str, Any]) -> Config:
    """Return the configuration, at the size of the effort unless it sets its own."""
    return Config(**{"states": effort.states, "rollouts": effort.rollouts, **config})


def trajectory(effort: Effort, **config: Any) -> Trajectory:
    """Simulate the runs of one setting."""
    return simulate(sized(effort, config), range(effort.runs))


def entropies(effort: Effort, **config: Any) -> Array:
    """Return the entropy of the runs of one setting, (runs, rollouts + 1), nats."""
    return trajectory(effort, **config).entropy


def side_by_side(effort: Effort, varied: Mapping[str, Sequence[float]], **config: Any) -> Array:
    """Return the entropy for many settings of a controller's hyperparameters, (settings, runs, rollouts + 1), nats.

    varied: for each hyperparameter, its value in each setting. The settings share their seeds.
    """
    return np.stack([run.entropy for run in simulate_settings(sized(effort, config), varied, range(effort.runs))])
