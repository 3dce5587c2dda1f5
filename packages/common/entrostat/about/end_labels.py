"""Names of lines at their ends, moved apart where they would cover each other; for pictures of matplotlib."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

SPACING = 1.35
"""Least distance of two names, in font sizes."""


class End(NamedTuple):
    """Name of a line, or of a point."""

    name: str
    at: tuple[float, float]
    """End of the line, or the point: x and y, in units of the data."""
    colour: str


def label_ends(axes: Any, ends: Sequence[End], *, size: float = 9.0, leaders: bool = False) -> None:
    """Write each name at the right of the axes, level with its end or as near as the other names allow.

    Call it once all lines are drawn. A line without an end (NaN) gets no name. size: font size, points. leaders: draw a
    thin line from a name to its end.
    """
    ends = [end for end in ends if np.isfinite(end.at).all()]
    axes.get_ylim()  # transData lacks the newest lines until limits are asked for
    inverse = axes.transAxes.inverted()
    heights = [float(inverse.transform(axes.transData.transform(end.at))[1]) for end in ends]
    order = np.argsort(heights, kind="stable")
    inches = axes.get_window_extent().height / axes.figure.dpi
    for i, y in zip(order, apart(np.sort(heights), SPACING * size / 72 / inches), strict=True):
        end = ends[i]
        line = {"arrowstyle": "-", "linewidth": 0.5, "color": end.colour, "shrinkA": 0, "relpos": (0, 0.5)}
        axes.annotate(
            end.name,
            xy=end.at,
            xytext=(1.04 if leaders else 1.015, float(y)),
            textcoords="axes fraction",
            color=end.colour,
            va="center",
            fontsize=size,
            annotation_clip=False,
            arrowprops=line if leaders else None,
        )


def apart(at: Sequence[float] | np.ndarray, least: float) -> np.ndarray:
    """Return places at least `least` apart, as near as possible to `at`, in its order; at: (places,), ascending.

    Places that meet form a block around their mean (the squared distances from `at` are least).
    """
    blocks: list[tuple[float, int]] = []  # mean of at − i·least over the block's places i, and their number
    for i, place in enumerate(at):
        blocks.append((float(place) - i * least, 1))
        while len(blocks) > 1 and blocks[-1][0] < blocks[-2][0]:
            (x, n), (y, m) = blocks.pop(), blocks.pop()
            blocks.append(((n * x + m * y) / (n + m), n + m))
    return np.concatenate([np.full(n, mean) for mean, n in blocks] or [np.zeros(0)]) + least * np.arange(len(at))
