"""Figures of a trajectory."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .trajectory import Array, Trajectory


def band(axes: Any, values: Array, label: str) -> None:
    """Draw the mean over runs with a band from the lowest to the highest run; values (runs, steps)."""
    steps = np.arange(values.shape[1])
    (line,) = axes.plot(steps, values.mean(0), label=label)
    axes.fill_between(steps, values.min(0), values.max(0), color=line.get_color(), alpha=0.2, linewidth=0)


def entropy_figure(trajectory: Trajectory, path: Path) -> None:
    """Draw entropy with its target above and expected reward below, over rollouts, and write the figure to `path`."""
    config = trajectory.config
    figure = Figure(figsize=(7, 5), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    band(above, trajectory.entropy, f"{config.controller}, {trajectory.runs} runs: mean, lowest to highest")
    if trajectory.target is not None:
        target = trajectory.target.mean(0)
        above.plot(target, color="black", linestyle="--", linewidth=1, label=f"target {config.target or 'of the run'}")
    above.set(ylabel="entropy (nats)", title=f"{config.controller} in {config.env}")
    above.set_ylim(bottom=0)
    above.legend(frameon=False)
    band(below, trajectory.reward, "expected reward")
    below.set(ylabel="expected reward", xlabel="rollout")
    figure.savefig(path, dpi=150)
