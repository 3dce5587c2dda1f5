"""Picture of a phase diagram: a heat map per panel, on one colour scale."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from .phase import Panel, plain_name

LABELS = {
    "entropy": "final entropy (nats)",
    "reward": "final reward",
    "error": "distance from the target (nats)",
}
"""Label of the colour scale, by the number that the picture shows."""
COLOURS = "viridis"
CELL = (0.82, 0.46)
"""Width and height of a cell, inches, within LEAST and MOST of a panel."""
LEAST, MOST = (2.6, 1.7), (6.1, 5.0)
WRITTEN, NAMED = 100, 42
"""Most cells of a panel with their value, and most with their class too."""
COLUMNS, WIDEST = 2, 8.0
"""Most panels beside each other, and the width (inches) above which all are below each other."""


def draw(panels: Sequence[Panel], shown: str, path: Path) -> None:
    """Write the picture of panels; shown: entropy, reward or error."""
    phase_figure(panels, shown).savefig(path, dpi=150)


def phase_figure(panels: Sequence[Panel], shown: str) -> Figure:
    """Return the figure of panels, with the panels as its first axes."""
    tables = [_values(panel, shown) for panel in panels]
    known = np.concatenate([values[np.isfinite(values)] for values in tables] or [np.zeros(1)])
    low = float(known.min()) if shown == "reward" and known.size else 0.0
    scale = Normalize(low, max(float(known.max()), low + 1e-9) if known.size else 1.0)
    sizes = [(len(panel.values(1)), len(panel.values(0))) for panel in panels]
    width, height = (min(max(CELL[i] * max(size[i] for size in sizes), LEAST[i]), MOST[i]) for i in (0, 1))
    columns = min(COLUMNS if COLUMNS * (width + 0.9) + 1.0 <= WIDEST else 1, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(columns * (width + 0.9) + 1.0, rows * (height + 0.9)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel, values in zip(grid, panels, tables, strict=False):
        image = _heat_map(axes, panel, values, scale)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(grid), label=LABELS[shown], aspect=30)
    return figure


def is_geometric(values: Sequence[float]) -> bool:
    """Return True if at least three values have the same ratio from each to the next, within a fifth."""
    if len(values) < 3 or min(values) <= 0:
        return False
    ratios = np.diff(np.log(values))
    return bool(ratios.max() <= 1.2 * ratios.min() and not np.allclose(np.diff(values), values[1] - values[0]))


def _heat_map(axes: Any, panel: Panel, values: np.ndarray, scale: Normalize) -> Any:
    """Draw a panel with one cell per point; values (vertical, horizontal), NaN for none."""
    axes.set_facecolor("#dddddd")
    image = axes.imshow(values, origin="lower", aspect="auto", cmap=COLOURS, norm=scale)
    axes.set_title(panel.title, fontsize=10)
    for axis, name, places in (
        (axes.yaxis, panel.axes[0], panel.values(0)),
        (axes.xaxis, panel.axes[1], panel.values(1)),
    ):
        axis.set_ticks(range(len(places)), [f"{place:g}" for place in places])
        axis.set_label_text(plain_name(name) + (" (log scale)" if is_geometric(places) else ""))
    if values.size <= WRITTEN:
        _write_values(axes, panel, values, scale)
    return image


def _write_values(axes: Any, panel: Panel, values: np.ndarray, scale: Normalize) -> None:
    """Write the value into each cell and, in a small panel, its class."""
    for i, y in enumerate(panel.values(0)):
        for j, x in enumerate(panel.values(1)):
            value, point = values[i, j], panel.points.get((y, x))
            text = f"{value:.2f}" if np.isfinite(value) else "–"
            if point is not None and values.size <= NAMED:
                text += f"\n{point.phase}"
            dark = np.isfinite(value) and scale(value) < 0.6
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")


def _values(panel: Panel, shown: str) -> np.ndarray:
    """Return the number of each point, (vertical, horizontal); NaN for none."""
    points = [[panel.points.get((y, x)) for x in panel.values(1)] for y in panel.values(0)]
    return np.array([[np.nan if (v := getattr(point, shown, None)) is None else v for point in row] for row in points])
