"""Cells, one run each, and calls, the cells that share one simulation."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from entrostat.settings.schedules import is_schedule

from ..config import Config

LATER: dict[str, Any] = {
    "label_noise": 0,
    "temperature": None,
    "momentum": 0,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "max_grad_norm": None,
    "mini_batches": 1,
    "joint": False,
    "features": None,
    "pool": None,
    "held_out": 0,
    "predictable": 1,
    "skill": 0,
}
"""Settings that earlier sweeps do not have, with the values that they used."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a sweep. Cells are equal if they describe the same run."""

    config: Config
    """Configuration with single values as hyperparameters."""
    seed: int

    @cached_property
    def key(self) -> str:
        """Name of the cell, the same for the same run in any grid."""
        settings = {**self.config.resolved(), "seed": self.seed}
        for name, usual in LATER.items():
            if settings[name] == usual:
                del settings[name]  # sweeps from before the setting go on
        asked = json.dumps(settings, sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Call:
    """Cells that differ only in seed, learning rate, target and numbers of the controller: runs of one simulation."""

    cells: Sequence[Cell]

    @property
    def seeds(self) -> list[int]:
        return [cell.seed for cell in self.cells]

    @property
    def config(self) -> Config:
        """Configuration to simulate; a number that differs between cells is a sequence with one value per run."""
        first, configs = self.cells[0].config, [cell.config for cell in self.cells]
        args = {key: _together([config.controller_args[key] for config in configs]) for key in first.controller_args}
        target, lr = (_together([getattr(config, name) for config in configs]) for name in ("target", "lr"))
        if isinstance(target, list):
            target, args["target"] = None, target
        return replace(first, controller_args=args, target=target, lr=tuple(lr) if isinstance(lr, list) else lr)


def plan_calls(cells: Sequence[Cell], most: int) -> list[Call]:
    """Divide cells into as few calls as possible, with at most `most` cells each."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_structure(cell.config), []).append(cell)
    return [Call(group[i : i + most]) for group in groups.values() for i in range(0, len(group), most)]


def _structure(config: Config) -> str:
    """Return a key that is equal for configurations that can run side by side; numbers that may differ are left out."""
    args = {key: None if _is_number(value) else value for key, value in config.controller_args.items()}
    apart = {"target": config.target is None, "lr": config.lr is None, "controller_args": args}
    return json.dumps({**asdict(config), **apart}, sort_keys=True)


def _together(values: list[Any]) -> Any:
    """Return one value if all are equal, else all values."""
    return values[0] if all(value == values[0] for value in values) else values


def _is_number(value: Any) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or is_schedule(value)
