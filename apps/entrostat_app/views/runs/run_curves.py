"""Curves of runs: a line for each experiment, a band for its seeds, and raw numbers faint behind smoothed ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from ...shared import charts
from ...shared.charts import Picture
from ...shared.run_folder import experiment
from .run_log import LARGEST, Array, Log, Series
from .run_names import beginning

AXES = {"step": "rollout step", "tokens": "tokens trained on", "time": "training time (s)"}
TITLES = {
    "entropy": "Entropy H (nats)",
    "entropy/ema": "Entropy H, averaged by the trainer (nats)",
    "entropy/kept": "Entropy H of kept tokens (nats)",
    "entropy_change/measured": "Entropy change ΔH, measured (nats)",
    "entropy_change/predicted": "Entropy change ΔH, predicted (nats)",
    "flow/total": "Entropy flow (nats per unit step)",
    "reward": "Reward",
    "response_length": "Response length (tokens)",
    "time/step": "Time per step (s)",
}
"""Titles of metrics with a unit; other metrics are shown by name."""
POINTS = 500
"""Upper limit for the points of a line: a picture has no pixels for more."""
FEW = 24
"""Largest number of points for which each point is marked."""
WORD = 0.12
"""Room of an event's words, as a share of the time axis."""
NEAR = 600
"""Upper limit for the points of a panel that the pointer finds."""


@dataclass(frozen=True)
class Curve:
    """Line of a panel."""

    name: str
    x: Array
    """Positions on the time axis, (n,)."""
    raw: Array
    """Values as logged, (seeds, n)."""
    smooth: Array
    """Smoothed values, (seeds, n)."""
    low: Array | None = None
    """Lower end of the logged interval of a single run, smoothed likewise, (n,); None without one."""
    high: Array | None = None


def options(logs: Sequence[Log]) -> list[str]:
    """Return the metrics of all runs in the order of the logs: first those without a prefix, then group by group."""
    found = dict.fromkeys(key for log in logs for key in log.metrics)
    groups = {key.partition("/")[0]: None for key in found}
    order = {group: number for number, group in enumerate(groups)}
    return sorted(found, key=lambda key: ("/" in key, order[key.partition("/")[0]]))


def experiments(logs: Sequence[Log]) -> dict[str, list[Log]]:
    """Return the runs grouped by experiment: runs that differ by seed only form one experiment with a shared name."""
    groups: dict[tuple[str, int], list[Log]] = {}
    for log in logs:
        key, number = experiment(log.config), 0
        while any(_seeds(log) & _seeds(other) for other in groups.get((key, number), ())):
            number += 1
        groups.setdefault((key, number), []).append(log)
    runs = [[log.name for log in group] for group in groups.values()]
    named = [_name(names) for names in runs]
    unique = [
        name if named.count(name) == 1 else f"{names[0]} and {len(names) - 1} more"
        for name, names in zip(named, runs, strict=True)
    ]
    return dict(zip(unique, groups.values(), strict=True))


def _seeds(log: Log) -> set[str]:
    """Return the seeds of a run; runs that have not logged a seed count as having the same one."""
    several = log.config.get("seeds")
    return {str(seed) for seed in several} if isinstance(several, list) else {str(log.config.get("seed"))}


def _name(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{beginning(names).rstrip('-_/. ') or names[0]}, {len(names)} runs"


def axis_of(log: Log, axis: str) -> Series | None:
    """Return x (1, n) of a run's steps on one of AXES; None if the run has not logged it."""
    if axis == "step":
        return next(iter(log.metrics.values()), None)
    time, speed = log.metrics.get("time/step"), log.metrics.get("tokens_per_second")
    if time is None or (axis == "tokens" and (speed is None or len(speed.step) != len(time.step))):
        return None
    parts = time.values if axis == "time" or speed is None else time.values * speed.values
    return Series(time.step, parts.cumsum(-1))


def smoothed(values: Array, weight: float) -> Array:
    """Return the exponential moving average along the last dimension; `weight` of the past, 0 for no smoothing."""
    if weight == 0 or values.size == 0:
        return values
    return pd.DataFrame(values.T).ewm(alpha=1 - weight, adjust=False).mean().to_numpy().T


def curve(name: str, logs: Sequence[Log], metric: str, axis: str, weight: float) -> Curve | None:
    """Return an experiment's line: all seeds at the steps that all have logged; None if a run lacks metric or axis."""
    found = [(log.metrics.get(metric), axis_of(log, axis)) for log in logs]
    parts = [(series, x) for series, x in found if series is not None and x is not None]
    if len(parts) < len(found):
        return None
    steps = parts[0][0].step
    for series, _ in parts[1:]:
        steps = np.intersect1d(steps, series.step)
    rows = [series.values[:, np.isin(series.step, steps)] for series, _ in parts]
    if len({row.shape[1] for row in rows}) > 1 or not len(steps):  # a step logged twice
        return None
    x = steps if axis == "step" else np.mean([np.interp(steps, at.step, at.values[0]) for _, at in parts], 0)
    if not (np.abs(x) <= LARGEST).all():
        return None
    raw = np.concatenate(rows)
    low, high = (_end_of_interval(logs, f"{metric}/{end}", steps, weight) for end in ("low", "high"))
    return Curve(name, x, raw, smoothed(raw, weight), low, high)


def _end_of_interval(logs: Sequence[Log], key: str, steps: Array, weight: float) -> Array | None:
    """Return one end of the interval that a single run logged at these steps, (n,); None if it did not."""
    series = logs[0].metrics.get(key)
    if len(logs) > 1 or series is None or len(series.values) > 1 or not np.array_equal(series.step, steps):
        return None
    return smoothed(series.values, weight)[0]


def curves(groups: Mapping[str, Sequence[Log]], metric: str, axis: str, weight: float) -> list[Curve]:
    """Return the lines of a panel."""
    found = (curve(name, logs, metric, axis, weight) for name, logs in groups.items())
    return [line for line in found if line is not None]


def moving_targets(groups: Mapping[str, Sequence[Log]], axis: str) -> list[Curve]:
    """Return a line for the target of each experiment whose target moves."""
    keys = {
        name: next((key for key in logs[0].metrics if key.endswith("/target")), "") for name, logs in groups.items()
    }
    found = (curve(f"target of {name}", groups[name], key, axis, 0) for name, key in keys.items() if key)
    return [line for line in found if line is not None]


def shortened(groups: Mapping[str, Sequence[Log]], metrics: Sequence[str]) -> list[str]:
    """Return a sentence for each line that ends early because one of its runs does."""
    found: dict[str, None] = {}
    for metric in metrics:
        for name, logs in groups.items():
            ends = {log.name: log.metrics[metric].step[-1] for log in logs if metric in log.metrics}
            if len(set(ends.values())) > 1:
                first = min(ends, key=ends.__getitem__)
                found[f"{name} is drawn up to step {ends[first]:.0f}, where {first} ends."] = None
    return list(found)


Marks = Mapping[str, Sequence[tuple[int, str]]]
"""Events of lines by their names: a step and a word each."""


def picture(
    panels: Mapping[str, Sequence[Curve]], axis: str, targets: Sequence[float], height: int, marks: Marks | None = None
) -> Picture:
    """Return the picture of stacked panels, one per metric.

    targets: target entropies, drawn in the panel `entropy`. marks: drawn on the lines of the first panel.
    """
    frames, shapes = [], []
    series = tuple(dict.fromkeys(line.name for lines in panels.values() for line in lines))
    named = 1 < len(series) <= charts.NAMED and max(map(len, series)) <= charts.LONGEST
    for number, (metric, lines) in enumerate(panels.items()):
        parts = [_frame(line, NEAR // len(lines)) for line in lines]
        if named:
            whole = pd.concat(parts, ignore_index=True)
            parts = [whole.assign(label=charts.ends(charts.Panel(title=metric, frame=whole), height))]
        if number == 0 and marks:
            parts.append(_marks(lines, marks))
        if metric == "entropy":
            parts.append(pd.DataFrame({"target": list(targets)}))
        frames.append(pd.concat(parts, ignore_index=True).assign(panel=number, metric=metric))
        has_band = any(len(line.raw) > 1 or line.low is not None for line in lines)
        has_raw = any(line.raw is not line.smooth for line in lines)
        few = all(len(line.x) <= FEW for line in lines)
        has_targets = metric == "entropy" and bool(targets)
        sides = tuple(sorted(set(frames[-1]["below"].dropna()))) if "below" in frames[-1] else ()
        held = f"; dashed: target {', '.join(f'{target:g}' for target in targets)}" if has_targets else ""
        title = f"{TITLES.get(metric, metric)}{held}"
        shapes.append(Shape(title, has_band, has_raw, few, has_targets, sides))
    frame = pd.concat(frames, ignore_index=True)
    x = frame["x"]
    spec = _spec(tuple(shapes), series, named, float(x.min()), float(x.max()), AXES[axis], height)
    return Picture(spec, frame, charts.lines_alt([shape.title for shape in shapes], AXES[axis]))


def _marks(lines: Sequence[Curve], marks: Marks) -> pd.DataFrame:
    """Return a row for each event, on its line; one close behind an event that is told above is told below."""
    rows = [
        (line.name, step, float(np.interp(step, line.x, line.smooth.mean(0))), f"{word} {step}")
        for line in lines
        for step, word in marks.get(line.name, ())
    ]
    found = pd.DataFrame(sorted(rows, key=lambda row: row[1]), columns=["series", "x", "event", "word"])
    room, last, below = WORD * max(float(line.x[-1] - line.x[0]) for line in lines), -np.inf, []
    for step in found["x"]:
        below.append(step - last < room)
        last = last if below[-1] else step
    return found.assign(below=below)


def _frame(line: Curve, near: int = NEAR) -> pd.DataFrame:
    """Return the points of a line; `near` of them are found by the pointer."""
    at = charts.thinned(len(line.x), POINTS)
    raw, smooth = line.raw[:, at], line.smooth[:, at]
    band = {"low": smooth.min(0), "high": smooth.max(0)} if len(smooth) > 1 else {}
    if line.low is not None and line.high is not None:
        band = {"low": line.low[at], "high": line.high[at]}
    points = {"series": line.name, "x": line.x[at], "value": smooth.mean(0), "raw": raw.mean(0), **band}
    return pd.DataFrame(points).assign(near=np.isin(np.arange(len(at)), charts.thinned(len(at), near)))


class Shape(NamedTuple):
    """Everything but the numbers of a panel."""

    title: str
    bands: bool
    raw: bool
    few: bool
    """True if each point is marked."""
    targets: bool
    sides: tuple[bool, ...]
    """Sides of the events' words: True if some are below the line, False if some are above."""


@lru_cache(maxsize=256)
def _spec(
    shapes: tuple[Shape, ...], series: tuple[str, ...], named: bool, low: float, high: float, x_title: str, height: int
) -> dict[str, Any]:
    pointer = alt.selection_point(
        name="pointer", fields=["x"], nearest=True, on="pointermove", clear="pointerout", empty=False
    )
    high = max(high, low + 1)
    room = charts.LETTER * max(map(len, series)) if named else 0.0
    scale = alt.Scale(domain=[low - charts.MARGIN * (high - low), high + room * (high - low)], nice=False)
    parts = []
    for number, shape in enumerate(shapes):
        last = number == len(shapes) - 1
        ticks = charts.round_ticks(low, high, 6)
        axis = alt.Axis(values=ticks, labels=last, ticks=False, format="~s", labelFlush=True)
        x = alt.X("x:Q", title=x_title if last else None, axis=axis, scale=scale)
        parts.append(_panel(number, shape, series, named, x, x_title, pointer).properties(height=height))
    with charts.one_pointer():
        stacked = alt.vconcat(*parts, spacing=14).resolve_scale(x="shared", color="shared", strokeDash="shared")
        return charts.specification(stacked.configure_view(strokeWidth=0).configure_legend(symbolOpacity=1))


def _panel(
    number: int,
    shape: Shape,
    series: tuple[str, ...],
    named: bool,
    x: alt.X,
    x_title: str,
    pointer: alt.Parameter,
) -> Any:
    style = charts.styles(series, legend=not named)
    base = alt.Chart().transform_filter(alt.datum.panel == number)
    lines = base.transform_filter("isValid(datum.value)")
    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=charts.INSIDE)
    layers: list[Any] = []

    def at(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", axis=charts.INSIDE)

    if shape.bands:
        area = lines.transform_filter("isValid(datum.low)").mark_area(opacity=0.18)
        layers.append(area.encode(x=x, y=at("low"), y2="high:Q", color=style["color"]))
    if shape.raw:
        faint = lines.mark_line(strokeWidth=1, opacity=0.35)
        layers.append(faint.encode(x=x, y=at("raw"), color=style["color"]))
    layers.append(lines.mark_line(strokeWidth=2, point=shape.few).encode(x=x, y=y, **style))
    if named:
        name = lines.transform_filter("isValid(datum.label)").mark_text(align="left", dx=5)
        layers.append(name.encode(x=x, y=at("label"), text="series:N", color=style["color"]))
    if shape.targets:
        target = base.transform_filter("isValid(datum.target)")
        layers.append(target.mark_rule(color="#888888", strokeDash=[3, 3]).encode(y=at("target")))
    for below in shape.sides:
        side, triangle = (1, "triangle-up") if below else (-1, "triangle-down")
        event = base.transform_filter(alt.datum.below == below).encode(x=x, y=at("event"), color=style["color"])
        layers += [
            event.mark_point(shape=triangle, filled=True, size=90, opacity=1, yOffset=7 * side),
            event.mark_text(dy=18 * side, fontWeight="bold").encode(text="word:N"),
        ]
    tips = [
        alt.Tooltip("series:N", title="run"),
        alt.Tooltip("x:Q", title=x_title, format=",.6~g"),
        alt.Tooltip("value:Q", title=shape.title, format=".4g"),
        alt.Tooltip("raw:Q", title="raw", format=".4g"),
    ]
    layers += charts.pointed(lines.transform_filter("datum.near"), pointer, x, y, style["color"], tips)
    return alt.layer(*layers).properties(title=alt.Title(shape.title, anchor="start", fontSize=13, offset=4))
