"""Figure of the law R = −a·e^H + b: one panel per run, with points coloured by step."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from entrostat.about.colours import PALETTE
from entrostat.logs import laws

from .law_fit import RunLaw

PREDICTED, FITTED = PALETTE[:2]
GRID = 200
"""Number of entropies at which curves are drawn."""
STEPS = "cividis"
"""Colour map of the steps, readable with most kinds of colour blindness."""


def figure(found: Sequence[RunLaw], path: str | Path) -> None:
    """Draw the laws side by side, and save them to `path` (any format of matplotlib)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    texts = [warned(one) for one in found]
    below = 0.17 * max(text.count("\n") + 1 if text else 0 for text in texts)
    size = (6.4 * len(found), 4.6 + below)
    fig, panels = plt.subplots(1, len(found), figsize=size, squeeze=False, layout="constrained")
    for axes, one, text in zip(panels[0], found, texts, strict=True):
        dots = panel(axes, one)
        fig.colorbar(dots, ax=axes, label="step", pad=0.02)
        axes.annotate(
            text,
            (0, 0),
            (0, -38),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
            fontsize=8,
            color="#333333",
        )
    fig.savefig(path, dpi=130)
    plt.close(fig)


def warned(found: RunLaw) -> str:
    """Return the warnings, wrapped to the width of a panel."""
    return "\n".join(
        line for text in found.warnings for line in textwrap.wrap(f"! {text}", 86, subsequent_indent="   ")
    )


def panel(axes: Any, found: RunLaw) -> Any:
    """Draw one run on these axes, and return its scatter plot."""
    entropy, outcome, law = found.points.entropy, found.points.outcome, found.law
    grid = np.linspace(0, 1.03 * entropy.max(), GRID)
    low, high = laws.band(entropy, outcome, grid)
    axes.fill_between(grid, low, high, color=FITTED, alpha=0.2, linewidth=0, label="95% band of the fit")
    axes.plot(grid, law(grid), color=FITTED, linewidth=2, label=f"fit of {law.n} points, R² {law.r2:.3f}")
    if found.prediction is not None:
        first = found.prediction.law
        axes.plot(grid, first(grid), "--", color=PREDICTED, linewidth=2, label=f"from the first {first.n} points")
    dots = axes.scatter(entropy, outcome, c=found.points.step, cmap=STEPS, s=18, linewidth=0, zorder=3)
    (down, up), ceiling = law.ceiling_interval, law.ceiling
    reach = [[max(ceiling - down, 0)], [max(up - ceiling, 0)]]
    axes.errorbar([0], [ceiling], reach, fmt="D", color=FITTED, capsize=4, zorder=4)
    axes.axhline(ceiling, color=FITTED, linewidth=0.8, linestyle=":", label=f"ceiling b − a = {ceiling:.3f}")
    drawn = np.array([*outcome, ceiling])
    pad = 0.12 * max(float(np.ptp(drawn)), 1e-6)
    axes.set(xlabel="entropy H (nats)", ylabel=found.against, title=found.name)
    axes.set_ylim(drawn.min() - pad, drawn.max() + 1.8 * pad)
    axes.set_xlim(-0.03 * grid[-1], grid[-1])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    return dots
