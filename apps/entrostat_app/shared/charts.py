"""Pictures: a Vega-Lite specification, made once per shape, and the frame of numbers that it draws.

A panel is one plot over the time axis. Panels are stacked on a shared axis, and the pointer marks the same moment in
all of them. Labels of the vertical axis are in a margin inside the plot, so that a picture fills the page's width on
desktops and phones.

Altair takes 0.1 s for a specification, so specifications are cached; numbers are sent separately, as Arrow.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import ArrayLike

from toybandit import Trajectory

from .palette import COLOURS, DASHES

HEIGHT = 130
"""Height of a panel, pixels."""
MARGIN = 0.08
"""Margin left of the time axis, as a share of its length: room for the labels of the vertical axis."""
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


def styles(series: Sequence[str]) -> dict[str, Any]:
    """Return encodings of colour and dash for the field `series`: the same for the same names in the same order."""
    names = list(series)
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [list(DASHES[i % len(DASHES)]) for i in range(len(names))]
    legend = alt.Legend(
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
    shown = legend if len(names) > 1 else None
    return {
        "color": alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=shown),
        "strokeDash": alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=dashes), legend=shown),
    }


def linked(panels: Sequence[Panel], x_title: str, *, height: int = HEIGHT) -> Picture:
    """Return the picture of the panels, stacked on one time axis."""
    frame = pd.concat([panel.frame.assign(panel=panel.title) for panel in panels], ignore_index=True)
    shapes = tuple((p.title, tuple(p.frame["series"].unique()), "low" in p.frame) for p in panels)
    low, high = float(frame["x"].min()), float(frame["x"].max())
    return Picture(
        _linked_spec(shapes, low, high, x_title, height), frame, lines_alt([p.title for p in panels], x_title)
    )


def lines_alt(titles: Sequence[str], x_title: str) -> str:
    """Return the description of panels of lines."""
    return f"Lines over {x_title}: {', '.join(titles)}."


Shape = tuple[str, tuple[str, ...], bool]
"""Title and series of a panel, and whether it has bands."""


@lru_cache(maxsize=256)
def _linked_spec(shapes: tuple[Shape, ...], low: float, high: float, x_title: str, height: int) -> dict[str, Any]:
    pointer = alt.selection_point(
        name="pointer", fields=["x"], nearest=True, on="pointermove", clear="pointerout", empty=False
    )
    scale = alt.Scale(domain=[low - MARGIN * (high - low), high], nice=False)
    charts = []
    for number, shape in enumerate(shapes):
        last = number == len(shapes) - 1
        axis = alt.Axis(values=round_ticks(low, high), labels=last, ticks=False, labelFlush=True)
        x = alt.X("x:Q", title=x_title if last else None, axis=axis, scale=scale)
        charts.append(_lines(shape, x, x_title, pointer).properties(height=height))
    stacked = alt.vconcat(*charts, spacing=14).resolve_scale(x="shared", color="independent", strokeDash="independent")
    return specification(sharing(stacked, pointer).configure_view(strokeWidth=0))


def sharing(stacked: Any, pointer: alt.Parameter) -> Any:
    """Return the stacked panels with one pointer for all of them."""
    with warnings.catch_warnings():  # Altair warns when it merges the copies of the pointer
        warnings.filterwarnings("ignore", message="Automatically deduplicated selection parameter")
        return stacked.add_params(pointer)


def _lines(shape: Shape, x: alt.X, x_title: str, pointer: alt.Parameter) -> Any:
    title, series, has_bands = shape
    style = styles(series)
    base = alt.Chart().transform_filter(alt.datum.panel == title)
    layers: list[Any] = []
    if has_bands:
        area = base.mark_area(opacity=0.18)
        layers.append(area.encode(x=x, y=alt.Y("low:Q", axis=INSIDE), y2="high:Q", color=style["color"]))
    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=INSIDE)
    layers.append(base.mark_line(strokeWidth=2).encode(x=x, y=y, **style))
    tips = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("x:Q", title=x_title),
        alt.Tooltip("value:Q", title=title, format=".4g"),
    ]
    near = base.transform_filter(pointer)
    layers.append(near.mark_rule(color="#888888").encode(x=x))
    layers.append(near.mark_point(size=45, filled=True).encode(x=x, y=y, color=style["color"], tooltip=tips))
    return alt.layer(*layers).properties(title=alt.Title(title, anchor="start", fontSize=13, offset=4))


def specification(chart: Any) -> dict[str, Any]:
    """Return the Vega-Lite of an Altair chart made without data; its layers have no data either.

    Screen readers get the description of the whole picture, not of each mark.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False, context={"data": None})
    config = spec.setdefault("config", {})
    config["mark"] = {**config.get("mark", {}), "aria": False}
    return spec


def round_ticks(low: float, high: float, count: int = 8) -> list[float]:
    """Return at most `count` + 1 round numbers from low to high."""
    span = max(high - low, 1e-12)
    power = 10.0 ** np.floor(np.log10(span / count))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= count)
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def show(picture: Picture, key: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw the picture at the page's width, or at its own width."""
    st.vega_lite_chart(picture.frame, dict(picture.spec), width=width, alt=picture.alt, key=key)
