"""Pictures: a Vega-Lite specification, made once per shape, and the frame of numbers that it draws.

A panel is one plot over the time axis. Panels are stacked on a shared axis, and the pointer marks the same moment in
all of them. Labels of the vertical axis are in a margin inside the plot, so that a picture fills the page's width on
desktops and phones.

Altair takes 0.1 s for a specification, so specifications are cached; numbers are sent separately, as Arrow.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import ArrayLike

from entrostat.about.end_labels import apart
from toybandit import Trajectory

from . import palette

HEIGHT = 130
"""Height of a panel, pixels."""
MARGIN = 0.08
"""Margin left of the time axis, as a share of its length: room for the labels of the vertical axis."""
NAMED, LONGEST = 5, 12
"""Upper limits for the lines of a panel, and for the letters of a name, with which names are written at the ends."""
LETTER, ROW = 0.022, 15
"""Room right of the time axis for a letter, as a share of its length, and height of a name, pixels."""
INSIDE = alt.Axis(
    title=None,
    tickCount=4,
    ticks=False,
    domain=False,
    labelAlign="left",
    labelBaseline="bottom",
    labelPadding=0,
    labelOffset=-1,
)
"""Vertical axis with its labels in the margin."""


@dataclass(frozen=True)
class Picture:
    """Specification, numbers and description of one picture."""

    spec: Mapping[str, Any]
    """Vega-Lite specification without data."""
    frame: pd.DataFrame
    alt: str
    """Description for screen readers. It does not depend on the numbers, because Vega recompiles a picture with another
    description, which takes 0.1 s. A text beside the picture describes the numbers."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Plot over the time axis."""

    title: str
    """Quantity on the vertical axis, with its unit."""
    frame: pd.DataFrame
    """Columns x, series, value and, for bands, low and high."""
    limits: tuple[float, float] | None = None
    """Ends of the vertical axis; None: those of the numbers."""


def table(values: Mapping[str, ArrayLike], x: ArrayLike | None = None) -> pd.DataFrame:
    """Return named arrays (n,) as the frame of a panel. x counts from 0 unless given; NaN is not drawn."""
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in values.items()}
    return _frame(arrays, x, {"value": list(arrays.values())})


def bands(values: Mapping[str, ArrayLike], x: ArrayLike | None = None) -> pd.DataFrame:
    """Return named arrays (runs, n) as the frame of a panel: means, and a band from the lowest to the highest run."""
    runs = {name: np.asarray(array, dtype=np.float64) for name, array in values.items()}
    means = {name: array.mean(0) for name, array in runs.items()}
    low, high = ([edge(array, 0) for array in runs.values()] for edge in (np.min, np.max))
    return _frame(means, x, {"value": list(means.values()), "low": low, "high": high})


def held_out(runs: Mapping[str, Trajectory], k: int) -> Panel | None:
    """Return the panel of pass@k on held-out prompts, means and bands; None if no run has such prompts.

    A run without them has a point that is not drawn, so that the others keep their colours.
    """
    if all(run.held_out is None for run in runs.values()):
        return None
    frames = [
        bands({name: [[np.nan]]})
        if run.held_out is None
        else bands({name: run.held_out.pass_at(k)}, run.held_out.rollouts)
        for name, run in runs.items()
    ]
    return Panel(title=f"pass@{k} on held-out prompts", frame=pd.concat(frames, ignore_index=True))


def _frame(
    arrays: Mapping[str, np.ndarray], x: ArrayLike | None, columns: Mapping[str, list[np.ndarray]]
) -> pd.DataFrame:
    lengths = [len(array) for array in arrays.values()]
    places = [np.arange(n) if x is None else np.asarray(x)[:n] for n in lengths]
    numbers = {name: np.concatenate(parts) for name, parts in columns.items()}
    return pd.DataFrame({"x": np.concatenate(places), "series": np.repeat(list(arrays), lengths), **numbers})


def thinned(count: int, most: int) -> np.ndarray:
    """Return at most `most` of `count` places, evenly spread, the first and the last among them."""
    places: np.ndarray = np.linspace(0, count - 1, min(count, most)).round().astype(int)
    return places


def styles(series: Sequence[str], *, legend: bool = True) -> dict[str, Any]:
    """Return encodings of colour and dash for the field `series`, with a legend of several names unless it is False."""
    names, looks = list(series), palette.styles(series)
    shown = alt.Legend(
        title=None,
        orient="top",
        symbolType="stroke",
        symbolSize=400,
        symbolStrokeWidth=2,
        symbolOpacity=1,
        columns=2 if max(map(len, names), default=0) > 12 else 3,
        labelLimit=170,
        offset=0,
    )
    drawn = shown if legend and len(names) > 1 else None
    colours, dashes = [look.colour for look in looks], [list(look.dash) for look in looks]
    return {
        "color": alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=drawn),
        "strokeDash": alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=dashes), legend=drawn),
    }


def linked(panels: Sequence[Panel], x_title: str, *, height: int = HEIGHT) -> Picture:
    """Return the picture of the panels, stacked on one time axis.

    Names of a few lines with short names are written at their ends; others are in a legend.
    """
    shapes = tuple(shape_of(panel) for panel in panels)
    parts = [
        panel.frame.assign(panel=panel.title, label=ends(panel, height) if shape.named else np.nan)
        for panel, shape in zip(panels, shapes, strict=True)
    ]
    frame = pd.concat(parts, ignore_index=True)
    low, high = float(frame["x"].min()), float(frame["x"].max())
    return Picture(
        _linked_spec(shapes, low, high, x_title, height), frame, lines_alt([p.title for p in panels], x_title)
    )


def ends(panel: Panel, height: int) -> np.ndarray:
    """Return the height of each line's name in its last row, in units of the panel, and NaN in all others."""
    values, found = panel.frame["value"], np.full(len(panel.frame), np.nan)
    last = values.dropna().groupby(panel.frame["series"], sort=False).apply(lambda line: line.index[-1])
    places = values[last].sort_values(kind="stable")
    shown = panel.frame[[column for column in ("value", "low", "high", "raw") if column in panel.frame]]
    low, high = panel.limits or (shown.min(axis=None), shown.max(axis=None))
    found[panel.frame.index.get_indexer(places.index)] = apart(places.to_numpy(), ROW / height * (high - low))
    return found


def lines_alt(titles: Sequence[str], x_title: str) -> str:
    """Return the description of panels of lines."""
    return f"Lines over {x_title}: {', '.join(titles)}."


class Shape(NamedTuple):
    """Everything but the numbers of a panel."""

    title: str
    series: tuple[str, ...]
    bands: bool
    named: bool
    """True if lines have names at their ends."""
    limits: tuple[float, float] | None


def shape_of(panel: Panel) -> Shape:
    """Return the shape of a panel."""
    series = tuple(panel.frame["series"].unique())
    named = 1 < len(series) <= NAMED and max(map(len, series)) <= LONGEST
    return Shape(panel.title, series, "low" in panel.frame, named, panel.limits)


@lru_cache(maxsize=256)
def _linked_spec(shapes: tuple[Shape, ...], low: float, high: float, x_title: str, height: int) -> dict[str, Any]:
    pointer = alt.selection_point(
        name="pointer", fields=["x"], nearest=True, on="pointermove", clear="pointerout", empty=False
    )
    letters = max((len(name) for shape in shapes if shape.named for name in shape.series), default=0)
    margins = MARGIN * (high - low), LETTER * letters * (high - low)
    scale = alt.Scale(domain=[low - margins[0], high + margins[1]], nice=False)
    charts = []
    for number, shape in enumerate(shapes):
        last = number == len(shapes) - 1
        axis = alt.Axis(values=round_ticks(low, high), labels=last, ticks=False, labelFlush=True)
        x = alt.X("x:Q", title=x_title if last else None, axis=axis, scale=scale)
        charts.append(_lines(shape, x, x_title, pointer).properties(height=height))
    with one_pointer():
        stacked = alt.vconcat(*charts, spacing=14)
        stacked = stacked.resolve_scale(x="shared", color="independent", strokeDash="independent")
        return specification(stacked.configure_view(strokeWidth=0))


def pointed(base: Any, pointer: alt.Parameter, x: Any, y: Any, colour: Any, tips: list[alt.Tooltip]) -> list[Any]:
    """Return the layers of a panel that mark the moment that the pointer is nearest to."""
    shown = alt.condition(pointer, alt.value(1), alt.value(0))
    points = base.mark_point(size=45, filled=True).encode(x=x, y=y, color=colour, opacity=shown, tooltip=tips)
    return [base.transform_filter(pointer).mark_rule(color="#888888").encode(x=x), points.add_params(pointer)]


@contextmanager
def one_pointer() -> Iterator[None]:
    """Silence Altair's warning when it merges the copies of a pointer that panels share."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Automatically deduplicated selection parameter")
        yield


def _lines(shape: Shape, x: alt.X, x_title: str, pointer: alt.Parameter) -> Any:
    style = styles(shape.series, legend=not shape.named)
    base = alt.Chart().transform_filter(alt.datum.panel == shape.title)
    layers: list[Any] = []
    if shape.bands:
        area = base.mark_area(opacity=0.18)
        layers.append(area.encode(x=x, y=alt.Y("low:Q", axis=INSIDE), y2="high:Q", color=style["color"]))
    limits = alt.Undefined if shape.limits is None else list(shape.limits)
    y = alt.Y("value:Q", scale=alt.Scale(zero=False, domain=limits), axis=INSIDE)
    layers.append(base.mark_line(strokeWidth=2).encode(x=x, y=y, **style))
    if shape.named:
        name = base.transform_filter("isValid(datum.label)").mark_text(align="left", dx=5)
        layers.append(name.encode(x=x, y=alt.Y("label:Q", axis=INSIDE), text="series:N", color=style["color"]))
    tips = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("x:Q", title=x_title),
        alt.Tooltip("value:Q", title=shape.title, format=".4g"),
    ]
    layers += pointed(base, pointer, x, y, style["color"], tips)
    return alt.layer(*layers).properties(title=alt.Title(shape.title, anchor="start", fontSize=13, offset=4))


def specification(chart: Any) -> dict[str, Any]:
    """Return the Vega-Lite of an Altair chart made without data; its layers have no data either.

    Screen readers get the description of the whole picture, not of each mark.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False, context={"data": None})
    config = spec.setdefault("config", {})
    config["mark"] = {**config.get("mark", {}), "aria": False}
    spec["usermeta"] = {"embedOptions": {"renderer": "svg"}}  # Streamlit draws many points on a canvas otherwise
    return spec


def round_ticks(low: float, high: float, count: int = 8) -> list[float]:
    """Return at most `count` + 1 round numbers from low to high."""
    span = max(high - low, 1e-12)
    power = 10.0 ** np.floor(np.log10(span / count))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= count)
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def show(picture: Picture, key: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw the picture at the page's width, or at its own width."""
    spec = {**picture.spec, "data": {"name": "numbers"}, "datasets": {"numbers": picture.frame}}
    st.vega_lite_chart(spec=spec, width=width, alt=picture.alt, key=key)
