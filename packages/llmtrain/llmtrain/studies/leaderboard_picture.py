"""Picture of the leaderboard: reward and pass@k against entropy."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from entrostat.about.colours import BASELINE, colour_of
from entrostat.about.end_labels import End, label_ends
from entrostat.about.titled_points import NAMED, OTHERS, Titled, explain_marks, save, short

from .standings import ByEntropy, Standing, standard_error
from .strengths import curves


class Mark(NamedTuple):
    """Named item of the picture: an entry, or the entries of a curve."""

    name: str
    standings: Sequence[Standing]

    def points(self, metric: str) -> list[tuple[float, float]]:
        """Return entropy and metric of each entry, lowest entropy first."""
        return sorted((s.mean("entropy"), s.mean(metric)) for s in self.standings)

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the entries."""
        return float(np.mean([y for _, y in self.points(metric)]))


def draw(
    standings: Sequence[Standing],
    metrics: Sequence[str],
    laws: Sequence[ByEntropy],
    path: Path,
    target: float | None = None,
) -> None:
    """Draw one panel per metric, as PNG and SVG (see `titled_points.save`): entries, curves, names of the best, the fit
    to entropy alone, and targets.

    Targets of single entries are left out. target: target of the page, if it has one.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    marks = _marks(standings)
    shown = [s for mark in marks for s in mark.standings]
    targets = {s.target for s in shown if s.target is not None and "target" not in s.entry.args}
    if target is not None:
        targets.add(target)
    figure = Figure(figsize=(8, 3.8 * len(metrics)), layout="constrained")
    FigureCanvasAgg(figure)
    points: list[Titled] = []
    for axes, metric in zip(figure.subplots(len(metrics), 1, squeeze=False)[:, 0], metrics, strict=True):
        points += _panel(axes, marks, metric, [law for law in laws if law.metric == metric], sorted(targets))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save(figure, path, points)


def _panel(
    axes: Any, marks: Sequence[Mark], metric: str, laws: Sequence[ByEntropy], targets: Sequence[float]
) -> list[Titled]:
    """Draw one metric and return its points; entries that the fit leaves out are only named, with their numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    far = {name for law in laws for name in law.left_out}
    outside = [mark for mark in marks if {s.entry.name for s in mark.standings} <= far]
    marks = [mark for mark in marks if mark not in outside]
    shown = [s for mark in marks for s in mark.standings]
    named = sorted((m for m in marks if not _is_baseline(m)), key=lambda m: -m.mean(metric))[:NAMED]
    named += [mark for mark in marks if _is_baseline(mark)]
    errors = {"xerr": standard_error(shown, "entropy"), "yerr": standard_error(shown, metric)}
    points, ends = [], []
    for mark in sorted(marks, key=named.__contains__):  # the named ones above the others
        colour = colour_of(mark.name) if mark in named else OTHERS
        x, y = zip(*mark.points(metric), strict=True)
        filled = colour if any(s.target is None for s in mark.standings) else "white"
        axes.plot(x, y, "o-", ms=5, lw=1, color=colour, markerfacecolor=filled, zorder=3 if mark in named else 2)
        points += [Titled(axes, (s.mean("entropy"), s.mean(metric)), _told(s, metric)) for s in mark.standings]
        if mark in named:
            axes.errorbar(x, y, **errors, fmt="none", lw=0.9, color=colour)
            name = "GRPO" if _is_baseline(mark) else short(mark.name)
            ends.append(End(name, (x[-1], y[-1]), colour))
    for law in laws:
        entropies = [s.mean("entropy") for s in shown]
        across = np.geomspace(min(entropies), max(entropies), 100)
        axes.plot(across, law.at(across), color="black", linewidth=1, linestyle="--", label="from entropy alone")
    for nats in targets:
        axes.axvline(nats, color=BASELINE, linewidth=1, linestyle=":", label=f"target {nats:g} nats")
    if any(s.target is not None for s in shown):
        explain_marks(axes)
    axes.set(xlabel="entropy (nats)", ylabel=metric, xscale="log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    if outside:
        told = "\n".join(_told(s, metric) for mark in outside for s in mark.standings)
        axes.text(0.98, 0.03, f"outside: {told}", transform=axes.transAxes, ha="right", fontsize=9)
    label_ends(axes, ends, leaders=True)
    return points


def _told(standing: Standing, metric: str) -> str:
    """Return an entry's name, entropy and metric."""
    return f"{standing.entry.drawn_as} ({standing.mean('entropy'):.2f} nats, {metric} {standing.mean(metric):.3f})"


def _is_baseline(mark: Mark) -> bool:
    return {s.entry.name for s in mark.standings} <= {"grpo", "ppo"}


def _marks(standings: Sequence[Standing]) -> list[Mark]:
    """Return the curves, and the entries that are on no curve; entries that trained alike are only counted."""
    twins = Counter(s.same_as for s in standings)
    shown = [s for s in standings if not s.same_as and not s.error]
    marks = [Mark(f"{c.name}: {c.hyperparameter}", c.standings) for c in curves(shown)]
    on_curves = {s.entry.name for mark in marks for s in mark.standings}
    for s in shown:
        if s.entry.name not in on_curves:
            count = twins[s.entry.name]
            marks.append(Mark(s.entry.drawn_as + (f" and {count} alike" if count else ""), [s]))
    return marks
