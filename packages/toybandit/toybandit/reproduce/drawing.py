"""Style of the pictures: colours and dashes that everyone can distinguish, lines with bands, labelled axes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .registry import Measurement

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
"""Okabe and Ito's colours, with yellow replaced by a brown that is visible on white."""
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SIZE = (5.5, 3.6)
"""Width and height of a picture, inches."""
LOOK: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "toybandit",
}
"""matplotlib settings of every picture."""


def colour(i: int) -> str:
    """Return the colour of the i-th series."""
    return COLOURS[i % len(COLOURS)]


def line_style(i: int) -> dict[str, Any]:
    """Return the colour and dash of the i-th series."""
    return {"color": colour(i), "linestyle": DASHES[i % len(DASHES)]}


def point_style(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th series; hollow when the colours repeat."""
    hollow = {"markerfacecolor": "white"} if i >= len(COLOURS) else {}
    return {"color": colour(i), "marker": MARKERS[i % len(MARKERS)], "linestyle": "none", **hollow}


def lines(axes: Axes, data: Measurement, x: str, y: str, *, split: str = "series") -> None:
    """Draw a line for each series, with a band from `y`_low to `y`_high if the table has them."""
    for i, (name, part) in enumerate(data.series(split).items()):
        table: Mapping[str, Any] = part.table
        axes.plot(table[x], table[y], label=name, **line_style(i))
        if f"{y}_low" in table:
            low, high = table[f"{y}_low"], table[f"{y}_high"]
            axes.fill_between(table[x], low, high, color=colour(i), alpha=0.15, linewidth=0)


def whiskers(table: Mapping[str, Any], column: str) -> np.ndarray:
    """Return the distances from a column to its `_low` and `_high`, (2, rows), for errorbar."""
    low, value, high = (np.asarray(table[f"{column}{end}"], dtype=float) for end in ("_low", "", "_high"))
    return np.stack([value - low, high - value])


def entropy_and_reward(canvas: Figure, data: Measurement, *, columns: int = 0, title: str | None = None) -> None:
    """Draw two panels over rollouts, entropy left and expected reward right, with one legend above both."""
    left, right = canvas.subplots(1, 2)
    for axes, y, label in ((left, "entropy", "entropy (nats)"), (right, "reward", "expected reward")):
        lines(axes, data, "rollout", y)
        axes.set(xlabel="rollout", ylabel=label)
    left.set_ylim(bottom=0)
    if title:
        canvas.suptitle(title, fontsize=LOOK["axes.titlesize"])
    handles, names = left.get_legend_handles_labels()
    canvas.legend(handles, names, loc="outside upper center", ncols=columns or min(len(names), 5), **TIGHT)


TIGHT: Mapping[str, Any] = {"fontsize": 7.5, "columnspacing": 1.2, "handlelength": 2.2}
"""Settings of a legend with many entries."""


def legend_above(axes: Axes, title: str, columns: int = 2) -> None:
    """Put the legend above the axes, with a title."""
    axes.legend(title=title, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, **TIGHT)
