"""The picture of the leaderboard: reward and pass@k against entropy."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..compare import COLOURS
from .standings import ByEntropy, Standing, standard_error

FREE, AIMED = COLOURS[:2]
"""Of controllers without and with a target."""


def draw(standings: Sequence[Standing], metrics: Sequence[str], laws: Sequence[ByEntropy], path: Path) -> None:
    """A panel for each metric: a mark an entry, its name at the right, and what the entropy alone would give."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    shown = [s for s in standings if not s.same_as and not s.error]
    twins = Counter(s.same_as for s in standings)
    figure = Figure(figsize=(8.5 * len(metrics), 8))
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.05, right=0.82, wspace=0.75, bottom=0.08, top=0.96)
    for axes, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        for law in (law for law in laws if law.metric == metric):
            across = np.geomspace(*_ends([s.mean("entropy") for s in shown]), 100)
            axes.plot(across, law.at(across), color="black", linewidth=1, linestyle="--", label="entropy alone")
        for target in sorted({s.target for s in shown if s.target is not None}):
            axes.axvline(target, color=AIMED, linewidth=0.8, linestyle=":", label=f"target {target:g}")
        for aimed, colour, label in ((False, FREE, "without a target"), (True, AIMED, "with a target")):
            marks = [s for s in shown if (s.target is not None) == aimed]
            x, y = ([s.mean(name) for s in marks] for name in ("entropy", metric))
            errors = {"xerr": standard_error(shown, "entropy"), "yerr": standard_error(shown, metric)}
            axes.errorbar(x, y, **errors, fmt="o", ms=4, lw=0.6, color=colour, label=label)
        order = sorted(shown, key=lambda s: -s.mean(metric))
        for i, s in enumerate(order):
            count = twins[s.entry.name]
            axes.annotate(
                s.entry.name + (f" and {count} trained alike" if count else ""),
                xy=(s.mean("entropy"), s.mean(metric)),
                xytext=(1.03, 1 - (i + 0.5) / len(order)),
                textcoords="axes fraction",
                fontsize=7,
                va="center",
                color=FREE if s.target is None else AIMED,
                arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": "#999999", "relpos": (0, 0.5), "shrinkB": 2},
            )
        axes.set(xlabel="entropy (nats)", ylabel=metric, xscale="log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(color="#eeeeee", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8, loc="best")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)
