"""Registry of reproduced figures: a function measures a table, and another draws that table and nothing else.

    def draw(canvas, data): ...                    canvas: an empty matplotlib Figure; data: the Measurement

    @figure("entropy-mechanism-2", source="Entropy Mechanism, figure 2", shows="...", changes_if="...", draw=draw)
    def entropy_against_reward(effort): ... return Measurement(table, numbers, found)

Tests check the numbers. The picture contains nothing that is not in the table.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..workspace import one_thread


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Amount of simulation."""

    runs: int
    """Seeds of each curve."""
    scale: float
    """Factor on a figure's rollouts, states and random instances."""

    def of(self, count: int, least: int = 1) -> int:
        """Return `count` scaled, at least `least`."""
        return max(round(self.scale * count), least)


QUICK = Effort(runs=2, scale=0.2)
FULL = Effort(runs=8, scale=1.0)


class Measurement(NamedTuple):
    """Data and findings of a figure."""

    table: Mapping[str, NDArray[Any]]
    """Columns of equal length, one row for each mark of the picture; text columns name the series."""
    numbers: Mapping[str, float]
    """Main results of the picture: `Measured` if they have a standard error."""
    found: str
    """Main results in a sentence or two: the paper's result, and the result here."""
    sample: str = ""
    """Independent samples behind the standard errors; empty: a run for each seed of the effort."""

    def series(self, column: str) -> dict[str, "Measurement"]:
        """Return a measurement for each value of a text column, in order of appearance."""
        labels = np.asarray(self.table[column])
        names = dict.fromkeys(labels.tolist())
        return {
            name: self._replace(table={key: np.asarray(values)[labels == name] for key, values in self.table.items()})
            for name in names
        }


Measure = Callable[[Effort], Measurement]
Draw = Callable[[Figure, Measurement], None]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Figure that can be made."""

    name: str
    source: str
    """Paper and figure."""
    shows: str
    """Content of the figure, in one line."""
    changes_if: str
    """Measurement that would have changed the findings, as a clause after "if"."""
    measure: Measure
    draw: Draw

    def __call__(self, effort: Effort) -> Measurement:
        with one_thread():
            return self.measure(effort)


FIGURES: dict[str, Reproduction] = {}
OUT_OF_REACH: dict[str, str] = {}
"""Figures that a bandit cannot show, with the reason."""


def figure(name: str, *, source: str, shows: str, changes_if: str, draw: Draw) -> Callable[[Measure], Reproduction]:
    """Register the decorated function as the measurement of a figure."""

    def add(measure: Measure) -> Reproduction:
        _check_new(name)
        FIGURES[name] = Reproduction(
            name=name, source=source, shows=shows, changes_if=changes_if, measure=measure, draw=draw
        )
        return FIGURES[name]

    return add


def out_of_reach(name: str, reason: str) -> None:
    """Register a figure that a bandit cannot show."""
    _check_new(name)
    OUT_OF_REACH[name] = reason


def _check_new(name: str) -> None:
    _split(name)
    if name in FIGURES or name in OUT_OF_REACH:
        raise ValueError(f"figure {name!r} is registered twice")


def in_order(names: Iterable[str]) -> list[str]:
    """Return names ordered by paper (in the order of MODULES), then by number, tables last."""
    papers = list(dict.fromkeys(_split(name)[0] for name in (*FIGURES, *OUT_OF_REACH)))
    return sorted(names, key=lambda name: (papers.index(_split(name)[0]), *_split(name)[1:]))


def _split(name: str) -> tuple[str, bool, int, str]:
    """Return paper, True for a table, number, and the suffix after the number."""
    found = re.fullmatch(r"(.+?)-(table-)?(\d+)(.*)", name)
    if found is None:
        raise ValueError(f"{name!r} is not a figure name: use PAPER-NUMBER or PAPER-table-NUMBER")
    paper, table, number, rest = found.groups()
    return paper, table is not None, int(number), rest
