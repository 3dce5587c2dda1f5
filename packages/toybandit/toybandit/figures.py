"""Figures of a trajectory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .trajectory import Array, Trajectory

COLOURS = ("#0072B2", "#D55E00")
"""Colour of the run, and of the run beside it."""
APART = 0.09
"""Least distance between two labels, as a share of the height of the axes."""


def band(axes: Any, values: Array, colour: str) -> None:
    """Draw the mean over runs with a band from the lowest to the highest run; values (runs, steps)."""
    steps = np.arange(values.shape[1])
    axes.plot(steps, values.mean(0), color=colour)
    axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.2, linewidth=0)


def label_ends(axes: Any, ends: Sequence[tuple[str, float, str]]) -> None:
    """Write a name to the right of each line's end, moved up where it would cover another. ends: name, y, colour."""
    low, high = axes.get_ylim()
    least = -1.0
    for name, y, colour in sorted(ends, key=lambda end: end[1]):
        least = max((y - low) / (high - low), least + APART)
        where = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
        axes.annotate(name, (1, least), (4, 0), color=colour, va="center", fontsize=9, **where)


def entropy_figure(trajectory: Trajectory, path: Path, beside: Trajectory | None = None) -> None:
    """Draw entropy with its target above and expected reward below, over rollouts, and write the figure to `path`.

    beside: another run to draw with it. Each controller has one colour, and its name at the end of its lines.
    """
    config = trajectory.config
    figure = Figure(figsize=(7, 5), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    runs = [trajectory] if beside is None else [trajectory, beside]
    named = [(run, run.config.controller, colour) for run, colour in zip(runs, COLOURS, strict=False)]
    for run, _, colour in named:
        band(above, run.entropy, colour)
        band(below, run.reward, colour)
    above.set(ylabel="entropy (nats)", xlim=(0, trajectory.reward.shape[1]))
    above.set_title(f"{config.controller} in {config.env}; {trajectory.runs} runs: mean, lowest to highest")
    above.set_ylim(bottom=0)
    below.set(ylabel="expected reward", xlabel="rollout")
    entropies = [(name, float(run.entropy[:, -1].mean()), colour) for run, name, colour in named]
    if trajectory.target is not None:
        target = trajectory.target.mean(0)
        above.plot(target, color="black", linestyle="--", linewidth=1)
        entropies.append(("target", float(target[-1]), "black"))
    label_ends(above, entropies)
    label_ends(below, [(name, float(run.reward[:, -1].mean()), colour) for run, name, colour in named])
    figure.savefig(path, dpi=150)
