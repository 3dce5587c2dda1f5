"""Style of the pictures: colours and dashes that everyone can distinguish, lines with bands, labelled axes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from entrostat.about.colours import DASHES, PALETTE, linestyle

from ..figures import series_styles
from .registry import Measurement

COLOURS = (*PALETTE, "#000000")
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
    "legend.handlelength": 2.8,
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
    return {"color": colour(i), "linestyle": linestyle(DASHES[i % len(DASHES)])}


def named_styles(series: Sequence[str]) -> list[dict[str, Any]]:
    """Return the colour and dash of each series; a controller has its own colour."""
    return [line_style(i) | {"color": own.colour} for i, own in enumerate(series_styles(series))]


def point_style(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th series; hollow when the colours repeat."""
    hollow = {"markerfacecolor": "white"} if i >= len(COLOURS) else {}
    return {"color": colour(i), "marker": MARKERS[i % len(MARKERS)], "linestyle": "none", **hollow}


def lines(axes: Axes, data: Measurement, x: str, y: str, *, split: str = "series") -> None:
    """Draw a line for each series, with a band from `y`_low to `y`_high if the table has them."""
    series = data.series(split)
    for (name, part), style in zip(series.items(), named_styles(list(series)), strict=True):
        table: Mapping[str, Any] = part.table
        axes.plot(table[x], table[y], label=name, **style)
        if f"{y}_low" in table:
            low, high = table[f"{y}_low"], table[f"{y}_high"]
            axes.fill_between(table[x], low, high, color=style["color"], alpha=0.15, linewidth=0)


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


TIGHT: Mapping[str, Any] = {"fontsize": 8, "columnspacing": 1.2}
"""Settings of a legend with many entries."""


def legend_above(axes: Axes, title: str, columns: int = 2) -> None:
    """Put the legend above the axes, with a title."""
    axes.legend(title=title, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, **TIGHT)
