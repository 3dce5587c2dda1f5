"""Settings of a controller side by side, in one simulation that runs every setting with every seed."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from .config import Config
from .simulator import simulate
from .trajectory import Trajectory


def simulate_settings(config: Config, varied: Mapping[str, Sequence[float]], seeds: Sequence[int]) -> list[Trajectory]:
    """Return a trajectory for each setting, all with these seeds.

    varied: for each hyperparameter that differs between settings, its value in each setting.
    """
    (settings,) = {len(values) for values in varied.values()}
    each = {name: [value for value in values for _ in seeds] for name, values in varied.items()}
    runs = replace(config, controller_args={**config.controller_args, **each})
    whole = simulate(runs, [*seeds] * settings)
    return [take(whole, slice(i * len(seeds), (i + 1) * len(seeds))) for i in range(settings)]


def take(trajectory: Trajectory, runs: slice) -> Trajectory:
    """Return some runs of a trajectory, with the configuration of the whole trajectory."""
    arrays = {f.name: getattr(trajectory, f.name) for f in fields(trajectory)}
    part: dict[str, Any] = {
        name: value[runs] for name, value in arrays.items() if isinstance(value, np.ndarray | tuple)
    }
    return replace(trajectory, **part, metrics={name: value[runs] for name, value in trajectory.metrics.items()})
