"""Picture of the leaderboard: reward against entropy with the frontier, one panel per environment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..config import Config
from ..frontier import frontier_curve
from ..simulator import simulate
from ..trajectory import Array
from .cells import TARGET
from .standings import Standing

FREE, AIMED = "#0072B2", "#D55E00"
"""Colours of controllers without and with a target."""


def draw(
    panels: Mapping[str, Sequence[Standing]], configs: Mapping[str, Config], seeds: Sequence[int], path: Path
) -> None:
    """Write the picture of standings by environment; configurations and seeds give the bandits of the frontiers."""
    rows = (len(panels) + 1) // 2
    figure = Figure(figsize=(17, 9.5 * rows))
    figure.subplots_adjust(left=0.05, right=0.82, wspace=0.7, bottom=0.09 / rows, top=1 - 0.07 / rows, hspace=0.15)
    FigureCanvasAgg(figure)
    for i, (env, standings) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, 2, i + 1)
        success = simulate(replace(configs[env], rollouts=1), seeds).success
        panel(axes, [standing for standing in standings if not standing.error], success)
        axes.set_title(env)
    figure.savefig(path, dpi=90)


def panel(axes: Any, standings: Sequence[Standing], success: Array) -> None:
    """Draw one environment: distance to the highest reward, for the frontier and for each controller."""
    entropy, best = frontier_curve(success)
    highest = float(success.max(-1).mean())
    short = highest - best
    axes.plot(entropy[short > 0], short[short > 0], color="black", linewidth=1.2, label="frontier")
    axes.axvline(TARGET, color=AIMED, linewidth=0.8, linestyle=":", label=f"target {TARGET:g}")
    gaps = [highest - standing.reward.value for standing in standings if standing.reward]
    least = min((gap for gap in gaps if gap > 0), default=1e-6)  # one that earns all has no place on a log scale
    for aimed, colour, label in ((False, FREE, "without a target"), (True, AIMED, "with a target")):
        marks = [standing for standing in standings if standing.entry.has_target == aimed]
        x, y = np.array([s.entropy for s in marks]), highest - np.array([s.reward for s in marks])
        y = np.maximum(y, least)
        whiskers = {"xerr": _whisker(x), "yerr": _whisker(y)}
        axes.errorbar(x[:, 0], y[:, 0], **whiskers, fmt="o", ms=4, lw=0.7, color=colour, label=label)
    axes.set_yscale("log")
    axes.set_ylim(1.2 * short.max(), least / 2)
    axes.set_xlim(0, entropy[0])
    axes.set(xlabel="entropy of the final policy (nats)", ylabel=f"expected reward below {highest:.3g}")
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    _names(axes, standings, highest)
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _names(axes: Any, standings: Sequence[Standing], highest: float) -> None:
    """Write names at the right of the panel in the order of rewards, each with a line to its mark.

    Entries with the same numbers share the first one's name, with their count.
    """
    twins = Counter(standing.same_as for standing in standings)
    shown = [standing for standing in standings if not standing.same_as]
    for i, standing in enumerate(shown):
        assert standing.entropy is not None
        assert standing.reward is not None
        name = standing.entry.name
        axes.annotate(
            f"{name} and {twins[name]} with the same numbers" if twins[name] else name,
            xy=(standing.entropy.value, highest - standing.reward.value),
            xytext=(1.03, 1 - (i + 0.5) / len(shown)),
            textcoords="axes fraction",
            fontsize=7,
            va="center",
            color=AIMED if standing.entry.has_target else FREE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": "#999999", "relpos": (0, 0.5), "shrinkB": 2},
        )


def _whisker(estimates: Array) -> Array:
    """Return the lengths (2, marks) of error bars from value, low and high (marks, 3)."""
    return np.abs(estimates[:, 1:] - estimates[:, :1]).T
