"""What a reproduced figure is: a function that measures a table, and one that draws that table and nothing else.

    def draw(canvas, data): ...                    canvas: an empty matplotlib Figure; data: the Measurement

    @figure("entropy-mechanism-2", source="Entropy Mechanism, figure 2", shows="...", draw=draw)
    def entropy_against_reward(effort): ... return Measurement(table, numbers, found)

What is tested is the numbers. The picture holds nothing that is not in the table.
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
    """How much to simulate."""

    runs: int
    """Seeds of each curve."""
    scale: float
    """Factor on the rollouts, states and random instances that a figure asks for."""

    def of(self, count: int, least: int = 1) -> int:
        """`count` scaled, at least `least`."""
        return max(round(self.scale * count), least)


QUICK = Effort(runs=2, scale=0.2)
FULL = Effort(runs=8, scale=1.0)


class Measurement(NamedTuple):
    """What a figure shows."""

    table: Mapping[str, NDArray[Any]]
    """Columns of one length, one row for each mark of the picture; text columns tell series apart."""
    numbers: Mapping[str, float]
    """What a reader takes away from the picture, as numbers."""
    found: str
    """The same in a sentence or two: what the paper shows, and what was found here."""

    def series(self, column: str) -> dict[str, "Measurement"]:
        """Split by the values of a text column, in order of appearance."""
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
    """A figure that can be made."""

    name: str
    source: str
    """Paper and figure."""
    shows: str
    """What there is to see, in a line."""
    measure: Measure
    draw: Draw

    def __call__(self, effort: Effort) -> Measurement:
        with one_thread():
            return self.measure(effort)


FIGURES: dict[str, Reproduction] = {}
OUT_OF_REACH: dict[str, str] = {}
"""Figures that a bandit cannot show, with the reason."""


def figure(name: str, *, source: str, shows: str, draw: Draw) -> Callable[[Measure], Reproduction]:
    """Register the decorated function as the measurement of a figure."""

    def add(measure: Measure) -> Reproduction:
        _check_new(name)
        FIGURES[name] = Reproduction(name=name, source=source, shows=shows, measure=measure, draw=draw)
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
    """Paper by paper, as their modules are listed, then by number, tables last."""
    papers = list(dict.fromkeys(_split(name)[0] for name in (*FIGURES, *OUT_OF_REACH)))
    return sorted(names, key=lambda name: (papers.index(_split(name)[0]), *_split(name)[1:]))


def _split(name: str) -> tuple[str, bool, int, str]:
    """Paper, whether it is a table, number, and what follows the number."""
    found = re.fullmatch(r"(.+?)-(table-)?(\d+)(.*)", name)
    if found is None:
        raise ValueError(f"{name!r} is no name of a figure: PAPER-NUMBER or PAPER-table-NUMBER")
    paper, table, number, rest = found.groups()
    return paper, table is not None, int(number), rest
