"""Picture of the leaderboard: reward and pass@k against entropy."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .comparison import COLOURS, STYLES
from .standings import ByEntropy, Standing, standard_error
from .strengths import curves

FREE, AIMED, *OTHERS = COLOURS[:-1]  # without yellow, which is too light for text
"""Colours of single entries without and with a target, and of curves."""


class Mark(NamedTuple):
    """Named item of the picture: an entry, or the entries of a curve."""

    name: str
    standings: Sequence[Standing]
    colour: str
    line: str

    def far(self, metric: str) -> tuple[float, float]:
        """Return the point that the name points to: the one with the highest entropy."""
        return max((s.mean("entropy"), s.mean(metric)) for s in self.standings)


def draw(
    standings: Sequence[Standing],
    metrics: Sequence[str],
    laws: Sequence[ByEntropy],
    path: Path,
    target: float | None = None,
) -> None:
    """Draw one panel per metric: entries, curves, their names at the right, the fit to entropy alone, and targets.

    Targets of single entries are left out. target: target of the page, if it has one.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    marks = _marks(standings)
    shown = [s for mark in marks for s in mark.standings]
    targets = {s.target for s in shown if s.target is not None and "target" not in s.entry.args}
    if target is not None:
        targets.add(target)
    figure = Figure(figsize=(8.5 * len(metrics), 8))
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.05, right=0.8, wspace=0.8, bottom=0.08, top=0.96)
    for axes, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        for law in (law for law in laws if law.metric == metric):
            ends = _ends([s.mean("entropy") for s in shown if s.entry.name not in law.left_out])
            across = np.geomspace(*ends, 100)
            axes.plot(across, law.at(across), color="black", linewidth=1, linestyle="--", label="entropy alone")
        for nats in sorted(targets):
            axes.axvline(nats, color=AIMED, linewidth=0.8, linestyle=":", label=f"target {nats:g}")
        errors = {"xerr": standard_error(shown, "entropy"), "yerr": standard_error(shown, metric)}
        labels = {FREE: "without a target", AIMED: "with a target"}
        for mark in marks:
            x, y = ([s.mean(name) for s in mark.standings] for name in ("entropy", metric))
            label = labels.pop(mark.colour, None)
            axes.errorbar(x, y, **errors, fmt="o", ls=mark.line, ms=4, lw=0.6, color=mark.colour, label=label)
        order = sorted(marks, key=lambda mark: -mark.far(metric)[1])
        for i, mark in enumerate(order):
            axes.annotate(
                mark.name,
                xy=mark.far(metric),
                xytext=(1.03, 1 - (i + 0.5) / len(order)),
                textcoords="axes fraction",
                fontsize=7,
                va="center",
                color=mark.colour,
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


def _marks(standings: Sequence[Standing]) -> list[Mark]:
    """Return the curves, and the entries that are on no curve; entries that trained alike are only counted."""
    twins = Counter(s.same_as for s in standings)
    shown = [s for s in standings if not s.same_as and not s.error]
    marks = [
        Mark(f"{c.name}: {c.hyperparameter}", c.standings, OTHERS[i % len(OTHERS)], STYLES[i // len(OTHERS) % 4])
        for i, c in enumerate(curves(shown))
    ]
    on_curves = {s.entry.name for mark in marks for s in mark.standings}
    for s in shown:
        if s.entry.name not in on_curves:
            count = twins[s.entry.name]
            name = s.entry.name + (f" and {count} trained alike" if count else "")
            marks.append(Mark(name, [s], FREE if s.target is None else AIMED, "none"))
    return marks


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)
