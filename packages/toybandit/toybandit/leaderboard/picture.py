"""Picture of the leaderboard: reward against entropy with the frontier, one panel per environment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from entrostat.about.colours import BASELINE, colour_of
from entrostat.about.end_labels import End, label_ends
from entrostat.about.titled_points import NAMED, OTHERS, Titled, explain_marks, save, short

from ..config import Config
from ..frontier import frontier_curve
from ..simulator import simulate
from ..trajectory import Array
from .cells import TARGET
from .standings import Estimate, Standing


def draw(
    panels: Mapping[str, Sequence[Standing]], configs: Mapping[str, Config], seeds: Sequence[int], path: Path
) -> None:
    """Write the picture of standings by environment, as PNG and SVG; see `titled_points.save`.

    Configurations and seeds give the bandits of the frontiers.
    """
    figure = Figure(figsize=(8, 3.4 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    points: list[Titled] = []
    for axes, (env, standings) in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True):
        success = simulate(replace(configs[env], rollouts=1), seeds).success
        points += panel(axes, [standing for standing in standings if not standing.error], success)
        axes.set_title(env)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save(figure, path, points)


def panel(axes: Any, standings: Sequence[Standing], success: Array) -> list[Titled]:
    """Draw one environment: distance to the highest reward, for the frontier and each controller; return the points.

    The best entries and GRPO have their controllers' colours, and names at the right. standings: highest reward first.
    """
    entropy, best = frontier_curve(success)
    highest = float(success.max(-1).mean())
    missing = highest - best
    axes.plot(entropy[missing > 0], missing[missing > 0], color="black", linewidth=1.2, label="frontier")
    axes.axvline(TARGET, color=BASELINE, linewidth=1, linestyle=":", label=f"target {TARGET:g} nats")
    gaps = [highest - standing.reward.value for standing in standings if standing.reward]
    least = min((gap for gap in gaps if gap > 0), default=1e-6)  # one that earns all has no place on a log scale
    baselines = [s for s in standings if s.entry.name == "ppo"]
    shown = [s for s in standings if not s.same_as and s not in baselines]
    named = [*shown[:NAMED], *baselines[:1]]
    points, ends = [], []
    for standing in [*shown[NAMED:], *named]:
        assert standing.entropy is not None
        assert standing.reward is not None
        colour = colour_of(standing.entry.drawn_as) if standing in named else OTHERS
        missed = Estimate(*(max(highest - value, least) for value in standing.reward))
        x, y = standing.entropy.value, missed.value
        filled = "white" if standing.entry.has_target else colour
        axes.plot(x, y, "o", ms=5, color=colour, markerfacecolor=filled)
        numbers = f"{x:.2f} nats, reward {standing.reward.value:.4f}"
        points.append(Titled(axes, (x, y), f"{standing.entry.drawn_as} ({numbers})"))
        if standing in named:
            whiskers = {"xerr": _whisker(standing.entropy), "yerr": _whisker(missed)}
            axes.errorbar(x, y, **whiskers, fmt="none", lw=0.9, color=colour)
            name = "GRPO" if standing in baselines else short(standing.entry.drawn_as)
            ends.append(End(name, (x, y), colour))
    explain_marks(axes)
    axes.set(yscale="log", ylim=(1.2 * missing.max(), least / 2), xlim=(0, entropy[0]))
    axes.set(xlabel="entropy of the final policy (nats)", ylabel=f"expected reward below {highest:.3g}")
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    label_ends(axes, ends, leaders=True)
    return points


def _whisker(estimate: Estimate) -> Array:
    """Return the lengths (2, 1) of an error bar."""
    return np.abs([[end - estimate.value] for end in (estimate.low, estimate.high)])
