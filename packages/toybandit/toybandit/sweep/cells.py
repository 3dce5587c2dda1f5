"""Cells, of which each is one run, and calls: the cells that one simulation takes side by side."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from ..config import Config


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a sweep. Cells are equal when they ask for the same numbers."""

    config: Config
    """Its hyperparameters are single values."""
    seed: int

    @cached_property
    def key(self) -> str:
        """Name of the cell: the same for whatever asks for the same run, in any grid."""
        asked = json.dumps({**self.config.resolved(), "seed": self.seed}, sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Call:
    """Cells that differ only in seed, learning rate, target and numbers of the controller: the runs of a simulation."""

    cells: Sequence[Cell]

    @property
    def seeds(self) -> list[int]:
        return [cell.seed for cell in self.cells]

    @property
    def config(self) -> Config:
        """What to simulate: a number that differs between cells is a sequence with one value for each run."""
        first, configs = self.cells[0].config, [cell.config for cell in self.cells]
        args = {key: _together([config.controller_args[key] for config in configs]) for key in first.controller_args}
        target, lr = (_together([getattr(config, name) for config in configs]) for name in ("target", "lr"))
        if isinstance(target, list):
            target, args["target"] = None, target
        return replace(first, controller_args=args, target=target, lr=tuple(lr) if isinstance(lr, list) else lr)


def plan_calls(cells: Sequence[Cell], most: int) -> list[Call]:
    """Divide cells into as few calls as there can be, each of at most `most` cells."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_structure(cell.config), []).append(cell)
    return [Call(group[i : i + most]) for group in groups.values() for i in range(0, len(group), most)]


def _structure(config: Config) -> str:
    """Equal for configurations that can run side by side: numbers that may differ between runs are left out."""
    args = {key: None if _is_number(value) else value for key, value in config.controller_args.items()}
    apart = {"target": config.target is None, "lr": config.lr is None, "controller_args": args}
    return json.dumps({**asdict(config), **apart}, sort_keys=True)


def _together(values: list[Any]) -> Any:
    """The one value there is, or all of them."""
    return values[0] if all(value == values[0] for value in values) else values


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
