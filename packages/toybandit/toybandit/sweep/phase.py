"""Phase diagram of a sweep: how its runs end over two numeric settings, with a panel per controller and target.

cells, rows ► groups (controllers) ► axes (two settings) ► panels ► points (means over seeds) ► tables, picture
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..config import Config
from .cells import Cell
from .measure import Row

COLLAPSED = 0.1
"""Share of the start below which an entropy has collapsed."""
HELD = 0.1
"""Largest mean distance from the target at which an entropy counts as held, nats."""
PREFIX = "args."
"""Beginning of the names of hyperparameters, as in sweep.parquet."""
NEEDS = "a phase diagram needs exactly two numeric settings"


@dataclass(frozen=True, kw_only=True)
class Point:
    """Means over the finished runs of one setting. A number is None if no run has it."""

    start: float | None
    """Initial entropy, nats."""
    entropy: float | None
    """Final entropy, nats."""
    reward: float | None
    """Final expected reward; with episodes, that of the last third of the rollouts."""
    target: float | None
    error: float | None
    """Distance between the target and the mean entropy of the last third, nats; a distance has no sign, so seeds on
    both sides of the target do not cancel."""
    runs: int
    finished: int

    @property
    def phase(self) -> str:
        """Class of the runs by their end: collapsed, held, rising, between, or failed."""
        if self.entropy is None or self.start is None:
            return "failed"
        limit = COLLAPSED * self.start
        if self.target is not None and self.target < limit:
            limit = COLLAPSED * self.target
        if self.entropy < limit:
            return "collapsed"
        if self.error is not None and self.error <= HELD:
            return "held"
        return "rising" if self.entropy > self.start else "between"


@dataclass(frozen=True)
class Panel:
    """Points of one controller with one target."""

    title: str
    axes: tuple[str, str]
    """Names of the settings of the vertical and of the horizontal axis."""
    points: Mapping[tuple[float, float], Point]
    """Points by their values on the two axes."""

    def values(self, axis: int) -> list[float]:
        """Return the values on an axis, rising."""
        return sorted({place[axis] for place in self.points})

    @property
    def has_target(self) -> bool:
        return any(point.target is not None for point in self.points.values())


def settings_of(cell: Cell) -> dict[str, Any]:
    """Return what a grid can vary besides seeds. None: the value of the environment or of the controller."""
    config = cell.config
    args = dict(config.controller_args)
    aim = args.pop("target", None) if config.target is None else config.target
    given = {field.name: getattr(config, field.name) for field in fields(Config) if field.name != "controller_args"}
    return given | {"target": aim} | {PREFIX + name: value for name, value in args.items()}


def groups(cells: Sequence[Cell]) -> list[list[int]]:
    """Return the places of cells with the same controller and the same names of hyperparameters."""
    found: dict[tuple[str, ...], list[int]] = {}
    for place, cell in enumerate(cells):
        found.setdefault((cell.config.controller, *sorted(cell.config.controller_args)), []).append(place)
    return list(found.values())


def varied(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of settings with several values, all of them numbers."""
    return [name for name in _several(settings) if all(_is_number(given.get(name)) for given in settings)]


def axes_of(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the two axes for these varied settings; None if there are not two.

    Targets make panels if two other settings vary, and are the vertical axis if one does.
    """
    others = [name for name in names if name != "target"]
    chosen = others if len(others) == 2 else names
    return (chosen[0], chosen[1]) if len(chosen) == 2 else None


def panels(cells: Sequence[Cell], rows: Sequence[Row]) -> list[Panel]:
    """Return the panels of a sweep; none if no controller varies exactly two numeric settings."""
    settings = [settings_of(cell) for cell in cells]
    found = []
    for group in groups(cells):
        axes = axes_of(varied([settings[i] for i in group]))
        if axes is None:
            continue
        controller = cells[group[0]].config.controller
        kin = [given for given in settings if given["controller"] == controller]
        apart = [name for name in _several(kin) if name not in (*axes, "target")]
        parts: dict[str, list[int]] = {}
        for i in group:
            title = _title(settings[i], apart, None if "target" in axes else _target(settings[i], rows[i]))
            parts.setdefault(title, []).append(i)
        found += [Panel(title, axes, _points(axes, part, settings, rows)) for title, part in parts.items()]
    return found


def left_out(cells: Sequence[Cell]) -> tuple[str, int]:
    """Return a line on the controllers without a panel, empty if all have one, and the most settings they vary."""
    which: dict[tuple[str, ...], list[str]] = {}
    for group in groups(cells):
        names = varied([settings_of(cells[i]) for i in group])
        if axes_of(names) is None:
            which.setdefault(tuple(names), []).append(cells[group[0]].config.controller)
    told = [
        f"{', '.join(dict.fromkeys(controllers))}: {', '.join(map(plain_name, names)) or 'none'} varied"
        for names, controllers in which.items()
    ]
    return (f"{NEEDS}; {'; '.join(told)}" if told else ""), max(map(len, which), default=0)


def plain_name(name: str) -> str:
    """Return the name of a setting as in a grid."""
    return name.removeprefix(PREFIX)


def table(panel: Panel) -> str:
    """Return the points of a panel as a Markdown table, aligned for a terminal."""
    head = [*reversed([plain_name(name) for name in panel.axes]), "entropy", "class", "reward"]
    head[3:3] = ["error"] if panel.has_target else []
    lines = [head]
    for (y, x), point in sorted(panel.points.items()):
        partial = f" ({point.finished} of {point.runs} runs)" if 0 < point.finished < point.runs else ""
        errors = [number(point.error)] if panel.has_target else []
        lines.append([f"{x:g}", f"{y:g}", number(point.entropy), *errors, point.phase + partial, number(point.reward)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    rule = ["-" * width for width in widths]
    return "\n".join(f"| {' | '.join(line)} |" for line in [padded[0], rule, *padded[1:]])


def page(found: Sequence[Panel], picture: str) -> str:
    """Return the Markdown page of the panels with their picture."""
    intro = (
        "Means over seeds; entropies in nats. *Entropy* and *reward* are those of the final policy; *error* is the\n"
        "distance between the target and the entropy of the last third. *Collapsed*: below a tenth of the initial\n"
        "entropy (of the target, if that is lower still). *Held*: error at most "
        f"{HELD:g}. *Rising*: above the\ninitial entropy. *Between*: none of these."
    )
    parts = ["# Phase diagram", intro, f"![Phase diagram]({picture})"]
    for panel in found:
        parts += [f"## {panel.title}", table(panel)]
    return "\n\n".join(parts) + "\n"


def number(value: float | None) -> str:
    """Return a mean with three decimals, or a dash for None."""
    return "–" if value is None else f"{value:.3f}"


def _points(
    axes: tuple[str, str], part: Sequence[int], settings: Sequence[Mapping[str, Any]], rows: Sequence[Row]
) -> dict[tuple[float, float], Point]:
    together: dict[tuple[float, float], list[Row]] = {}
    for i in part:
        together.setdefault((settings[i][axes[0]], settings[i][axes[1]]), []).append(rows[i])
    return {place: _point(runs) for place, runs in together.items()}


def _point(runs: Sequence[Row]) -> Point:
    finished = [row for row in runs if not row["error"]]
    rewards = [row["reward_held"] if row["reward_final"] is None else row["reward_final"] for row in finished]
    return Point(
        start=_mean([row["entropy_initial"] for row in finished]),
        entropy=_mean([row["entropy_final"] for row in finished]),
        reward=_mean(rewards),
        target=_mean([row["target"] for row in runs]),
        error=_mean([None if row["target_error"] is None else abs(row["target_error"]) for row in finished]),
        runs=len(runs),
        finished=len(finished),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _several(settings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of settings with more than one value."""
    for name in dict.fromkeys(name for given in settings for name in given):
        if len({repr(given.get(name)) for given in settings}) > 1:
            yield name


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _target(given: Mapping[str, Any], row: Row) -> Any:
    return row["target"] if given["target"] is None else given["target"]


def _title(given: Mapping[str, Any], apart: Sequence[str], target: Any) -> str:
    parts = [f"{plain_name(name)} {given[name]}" for name in apart if given.get(name) is not None]
    parts += [] if target is None else [f"target {target:g}" if _is_number(target) else f"target {target}"]
    return ", ".join([given["controller"], *parts])
