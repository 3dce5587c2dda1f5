"""Grids of a sweep: YAML mappings whose lists multiply.

seeds: 8                                   seeds 0 to 7; or a list of seeds
env: [noisy, on]                           any field of Config: a value or a list of values
target: [0.3, "linear(0.6, 0.3, 200)"]     for controllers with a target; the others run without one
controller:
  - grpo
  - entropic: {tau: 0, ki: [0.01, 0.05]}   hyperparameters: a value, a schedule or a list each
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

from entrostat.by_name import has_target
from entrostat.settings.choosing import unknown
from entrostat.settings.field_types import fit_fields
from entrostat.settings.plain_yaml import load_yaml
from entrostat.settings.schedules import check_target

from ..config import Config
from ..control import build_controller
from ..environments import TABLES
from .cells import Call, Cell, plan_calls

SEEDS = 8
SCALARS = (bool, int, float, str)
APART = ("controller", "controller_args", "target", "success_beta", *TABLES)
AXES = [field.name for field in fields(Config) if field.name not in APART]
"""Keys whose values multiply for every controller."""
KEYS = ("seeds", "controller", "target", *AXES)


def read_grid(path: Path) -> list[Cell]:
    """Return the cells of a grid file, each once, checked as far as possible without simulating.

    Raises ValueError, one line, with the file and the key.
    """
    content = load_yaml(path) or None  # an empty file is not a grid
    try:
        return read_cells(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_cells(grid: Any) -> list[Cell]:
    """Return the cells of a grid. Raise ValueError with the key if the grid is invalid."""
    if not isinstance(grid, Mapping):
        raise ValueError(f"a grid is a mapping with keys such as {', '.join(KEYS[:4])}")
    for key in grid:
        if key == "controller_args":
            raise ValueError("hyperparameters go under their controller, as in controller: [entropic: {ki: 0.01}]")
        if key not in KEYS:
            raise ValueError(unknown("key", str(key), KEYS, word=repr(key)))
    cells = list(dict.fromkeys(_product(grid)))
    for call in plan_calls(cells, len(cells)):
        _check_controller(call)
    return cells


def _check_controller(call: Call) -> None:
    args = call.config.controller_args
    try:
        build_controller(call.config, len(call.cells))
    except ValueError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in args.items())
        raise ValueError(f"{error} (given {given})" if given else str(error)) from error


def _product(grid: Mapping[str, Any]) -> Iterator[Cell]:
    seeds = _seeds(grid.get("seeds", SEEDS))
    axes = {key: _values(key, grid[key]) for key in AXES if key in grid}
    targets = _values("target", grid["target"]) if "target" in grid else [None]
    for target in targets:
        fit_fields(Config, {"target": target})
        check_target(target)
    controllers = list(_controllers(grid.get("controller", Config.controller)))
    for point in product(*axes.values()):
        for controller, args in controllers:
            aimed = has_target(controller)
            if "target" in grid and "target" in args:
                raise ValueError(f"target: controller {controller!r} sets a target too: give it in one place")
            for target in targets if aimed else [None]:
                settings = dict(zip(axes, point, strict=True))
                config = Config(controller=controller, controller_args=args, target=target, **settings)
                yield from (Cell(config, seed) for seed in seeds)


def _controllers(entries: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every controller with every combination of its hyperparameters."""
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, str):
            entry = {entry: None}
        if not isinstance(entry, Mapping) or len(entry) != 1 or not isinstance(next(iter(entry)), str):
            raise ValueError(f"controller: expected a name, or one name with its hyperparameters, not {entry!r}")
        ((name, given),) = entry.items()
        if not isinstance(given or {}, Mapping):
            raise ValueError(f"controller: the hyperparameters of {name!r} must be a mapping, not {given!r}")
        lists = {str(key): _values(f"{name}: {key}", value) for key, value in (given or {}).items()}
        yield from ((name, dict(zip(lists, point, strict=True))) for point in product(*lists.values()))


def _seeds(given: Any) -> list[int]:
    seeds = given if isinstance(given, list) else range(given) if type(given) is int else []
    if not len(seeds) or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise ValueError(f"seeds: expected a positive number or a list of seeds, not {given!r}")
    return list(seeds)


def _values(key: str, given: Any) -> list[Any]:
    """Return the values of one key as a list."""
    values = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(value, SCALARS) for value in values):
        raise ValueError(f"{key}: expected a value or a list of values, not {given!r}")
    return values
