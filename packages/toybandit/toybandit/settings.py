"""Settings of a controller side by side, in one simulation that runs every setting with every seed."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from entrostat.by_name import with_target

from .config import Config
from .simulator import simulate
from .trajectory import Trajectory


def simulate_settings(
    config: Config, varied: Mapping[str, Sequence[float]], seeds: Sequence[int], **options: Any
) -> list[Trajectory]:
    """Return a trajectory for each setting, all with these seeds.

    varied: for each hyperparameter that differs between settings, and for the learning rate `lr`, its value in each
    setting. options: those of `simulate`.
    """
    (settings,) = {len(values) for values in varied.values()}
    each = {name: tuple(value for value in values for _ in seeds) for name, values in varied.items()}
    lr = each.pop("lr", config.lr)
    runs = replace(config, lr=lr, controller_args={**config.controller_args, **each})
    whole = simulate(runs, [*seeds] * settings, **options)
    return [take(whole, slice(i * len(seeds), (i + 1) * len(seeds))) for i in range(settings)]


def simulate_each(configs: Sequence[Config], seeds: Sequence[int], **options: Any) -> list[Trajectory]:
    """Return a trajectory for each configuration, all with these seeds.

    Those that differ only in the learning rate, the target or numbers of the controller are one simulation, which takes
    a small part of the time of many. options: those of `simulate`.
    """
    split = [_split(config) for config in configs]
    found: dict[int, Trajectory] = {}
    for shared, first in split:
        alike = [i for i, (other, numbers) in enumerate(split) if other == shared and numbers.keys() == first.keys()]
        if alike[0] in found:
            continue
        each = {key: [split[i][1][key] for i in alike] for key in first}
        if all(len(set(values)) == 1 for values in each.values()):
            found |= dict.fromkeys(alike, simulate(configs[alike[0]], seeds, **options))
        else:
            found |= zip(alike, simulate_settings(shared, each, seeds, **options), strict=True)
    return [replace(found[i], config=config) for i, config in enumerate(configs)]


def _split(config: Config) -> tuple[Config, dict[str, float]]:
    """Return a configuration without the numbers that each run can have for itself, and these by name."""
    args = dict(config.controller_args)
    if isinstance(config.target, float | int):
        args = with_target(config.controller, args, float(config.target))
        config = replace(config, target=None)
    numbers = {key: value for key, value in args.items() if isinstance(value, float)}
    if isinstance(config.lr, float | int):
        numbers["lr"] = float(config.lr)
        config = replace(config, lr=None)
    return replace(config, controller_args={key: args[key] for key in args.keys() - numbers.keys()}), numbers


def take(trajectory: Trajectory, runs: slice) -> Trajectory:
    """Return some runs of a trajectory, with the configuration of the whole trajectory."""
    arrays = {f.name: getattr(trajectory, f.name) for f in fields(trajectory)}
    part: dict[str, Any] = {
        name: value[runs] for name, value in arrays.items() if isinstance(value, np.ndarray | tuple)
    }
    if (asked := trajectory.held_out) is not None:
        part["held_out"] = replace(asked, entropy=asked.entropy[runs], solved=asked.solved[runs])
    return replace(trajectory, **part, metrics={name: value[runs] for name, value in trajectory.metrics.items()})
