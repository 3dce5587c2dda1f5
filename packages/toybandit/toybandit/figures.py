"""Colours of series, and the figure of a trajectory."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from entrostat.about.colours import DASHES, PALETTE, Style, colour_of
from entrostat.about.end_labels import End, label_ends
from entrostat.by_name import list_controllers

from .trajectory import Array, Trajectory

CALLED = {
    **dict.fromkeys(("all", "clip", "default", "none", "untouched"), "grpo"),
    **dict.fromkeys(("a_≥_0_only", "positives", "positives_only"), "positive_only"),
    **dict.fromkeys(("a_≤_0_only", "negatives", "negatives_only"), "negative_only"),
    **dict.fromkeys(("ada_ent_reg", "adaptive", "adaptive_bonus"), "adaptive_entropy"),
    "entropy_adv": "entropy_advantage",
    "fixed_bonus": "entropy_bonus",
    "pos_adv_reweight": "positive_reweight",
    "rand_pos_clip": "random_positive_clip",
}
"""Controllers by other names that series have."""


def controller_of(series: str) -> str | None:
    """Return the controller that a series is named after, such as clip_higher for "Clip-Higher .2/.28", or None."""
    words = re.split(r"[ -]+", series.lower().partition(",")[0])
    names = ("_".join(words[:n]) for n in range(len(words), 0, -1))
    known = {name: name for name in list_controllers()} | CALLED
    return next((known[name] for name in names if name in known), None)


def series_styles(series: Sequence[str]) -> list[Style]:
    """Return a style for each series, with dashes where colours meet.

    A controller has its own colour, another series the next of PALETTE that no controller here has.
    """
    own = [colour_of(name) if (name := controller_of(one)) else "" for one in series]
    free = cycle([colour for colour in PALETTE if colour not in own] or PALETTE)
    met = Counter[str]()
    found = []
    for colour in (colour or next(free) for colour in own):
        found.append(Style(colour, DASHES[met[colour] % len(DASHES)]))
        met[colour] += 1
    return found


def band(axes: Any, values: Array, colour: str) -> None:
    """Draw the mean over runs with a band from the lowest to the highest run; values (runs, steps)."""
    steps = np.arange(values.shape[1])
    axes.plot(steps, values.mean(0), color=colour)
    axes.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.2, linewidth=0)


def entropy_figure(trajectory: Trajectory, path: Path, beside: Trajectory | None = None) -> None:
    """Draw entropy with its target above and expected reward below, over rollouts, and write the figure to `path`.

    beside: another run to draw with it. Each controller has one colour, and its name at the end of its lines.
    """
    config = trajectory.config
    figure = Figure(figsize=(7, 5), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    runs = [trajectory] if beside is None else [trajectory, beside]
    named = [(run, run.config.controller, colour_of(run.config.controller)) for run in runs]
    for run, _, colour in named:
        band(above, run.entropy, colour)
        band(below, run.reward, colour)
    above.set(ylabel="entropy (nats)", xlim=(0, trajectory.reward.shape[1]))
    above.set_title(f"{config.controller} in {config.env}; {trajectory.runs} runs: mean, lowest to highest")
    above.set_ylim(bottom=0)
    below.set(ylabel="expected reward", xlabel="rollout")
    last = trajectory.reward.shape[1]
    entropies = [End(name, (last, float(run.entropy[:, -1].mean())), colour) for run, name, colour in named]
    if trajectory.target is not None:
        target = trajectory.target.mean(0)
        above.plot(target, color="black", linestyle="--", linewidth=1)
        entropies.append(End("target", (last, float(target[-1])), "black"))
    label_ends(above, entropies)
    label_ends(below, [End(name, (last, float(run.reward[:, -1].mean())), colour) for run, name, colour in named])
    figure.savefig(path, dpi=150)
