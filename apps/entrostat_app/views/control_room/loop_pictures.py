"""Pictures of a PI loop: stable gains, poles, and responses over time."""

from functools import lru_cache
from math import pi
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import torch

from entrostat.numbers import pi_control

from ...shared import charts
from ...shared.charts import Panel, Picture
from ...shared.palette import COLOURS
from .loop import Loop

CELLS = 36
"""Cells of the stability picture along each axis."""
S_MAX, C_MAX = 2.0, 4.0
"""Largest g·Kp and g·Ki that can be stable."""
BORDERS = ("Jury's border", "onset of oscillation")
HERE = "these gains"
BEYOND = 1.12
"""Length of the axes as a multiple of S_MAX and C_MAX."""
SIDE = 270
"""Width and height of the unit circle's picture, pixels."""
DIVERGED = 5.0
"""Largest error that is drawn, nats."""


@lru_cache
def stable_cells() -> pd.DataFrame:
    """Return the cells of the (g·Kp, g·Ki) plane whose centre is stable, with the modulus of their slower pole."""
    s, c = ((np.arange(CELLS) + 0.5) / CELLS * most for most in (S_MAX, C_MAX))
    grid_s, grid_c = (torch.from_numpy(x.flatten()) for x in np.meshgrid(s, c, indexing="ij"))
    inside = pi_control.stable(1.0, grid_s, grid_c)
    slower = pi_control.poles(1.0, grid_s, grid_c).abs().amax(-1)
    half_s, half_c = S_MAX / CELLS / 1.9, C_MAX / CELLS / 1.9  # a small overlap hides seams
    frame = pd.DataFrame({"s": grid_s, "c": grid_c, "slower": slower}).loc[inside.numpy()]
    return frame.assign(s2=frame.s + half_s, c2=frame.c + half_c, s=frame.s - half_s, c=frame.c - half_c, part="cell")


@lru_cache
def borders() -> pd.DataFrame:
    """Return Jury's border, and the gains with two equal poles in [0, 1), above which the loop oscillates."""
    jury = pd.DataFrame({"s": [0.0, S_MAX], "c": [C_MAX, 0.0], "part": BORDERS[0]})
    equal = torch.linspace(0, 0.999, 60, dtype=torch.float64)
    kp, ki = pi_control.place_poles(1.0, equal, equal)
    return pd.concat([jury, pd.DataFrame({"s": kp, "c": ki, "part": BORDERS[1]})])


def stability(loop: Loop) -> Picture:
    """Return the picture of the (g·Kp, g·Ki) plane: Jury's border, the slower pole inside it, and the loop."""
    s, c = loop.point
    point = pd.DataFrame({"s": [s], "c": [c], "part": [HERE]})
    frame = pd.concat([stable_cells(), borders(), point], ignore_index=True)
    return Picture(
        _stability_spec(), frame, "Plane of g·Kp and g·Ki: the region of stable loops, with these gains marked."
    )


@lru_cache
def _stability_spec() -> dict[str, Any]:
    base = alt.Chart()
    x = alt.X(
        "s:Q",
        title="g·Kp",
        scale=alt.Scale(domain=[0, BEYOND * S_MAX], nice=False, clamp=True),
        axis=alt.Axis(values=[0, 0.5, 1, 1.5, 2], grid=False),
    )
    y = alt.Y(
        "c:Q",
        title="g·Ki",
        scale=alt.Scale(domain=[0, BEYOND * C_MAX], nice=False, clamp=True),
        axis=alt.Axis(values=[0, 1, 2, 3, 4], grid=False),
    )
    slower = alt.Color(
        "slower:Q",
        scale=alt.Scale(domain=[0.3, 1], scheme="viridis", reverse=True, clamp=True),
        legend=alt.Legend(title="slower pole |z|", orient="top", gradientLength=160),
    )
    tips = [alt.Tooltip("slower:Q", title="slower pole |z|", format=".2f")]
    dash = alt.StrokeDash(
        "part:N",
        scale=alt.Scale(domain=list(BORDERS), range=[[1, 0], [4, 3]]),
        legend=alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolSize=400),
    )
    told = [alt.Tooltip("s:Q", title="g·Kp", format=".3g"), alt.Tooltip("c:Q", title="g·Ki", format=".3g")]
    cells = base.transform_filter(alt.datum.part == "cell").mark_rect(stroke=None)
    lines = base.transform_filter(alt.FieldOneOfPredicate("part", list(BORDERS)))
    here = base.transform_filter(alt.datum.part == HERE).mark_point(
        shape="diamond", size=220, filled=True, color=COLOURS[1], stroke="white", strokeWidth=1.5, opacity=1
    )
    return charts.specification(
        alt.layer(
            cells.encode(x=x, x2="s2:Q", y=y, y2="c2:Q", color=slower, tooltip=tips),
            lines.mark_line(color=COLOURS[7], strokeWidth=2).encode(x=x, y=y, strokeDash=dash),
            here.encode(x=x, y=y, tooltip=told),
        )
        .properties(height=230, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure_view(strokeWidth=0)
    )


def poles(loop: Loop) -> Picture:
    """Return the picture of the poles in the complex plane, with the unit circle."""
    turn = np.linspace(0, 2 * pi, 91)
    circle = pd.DataFrame({"re": np.cos(turn), "im": np.sin(turn), "part": "unit circle", "order": np.arange(91)})
    found = loop.poles
    points = pd.DataFrame({"re": found.real, "im": found.imag, "part": "pole", "order": 0})
    frame = pd.concat([circle, points], ignore_index=True)
    return Picture(_poles_spec(), frame, "The poles of the loop in the complex plane, with the unit circle.")


@lru_cache
def _poles_spec() -> dict[str, Any]:
    scale = alt.Scale(domain=[-1.25, 1.25], nice=False, clamp=True)
    axis = alt.Axis(values=[-1, 0, 1], format="~g")
    x, y = alt.X("re:Q", title="Re z", scale=scale, axis=axis), alt.Y("im:Q", title="Im z", scale=scale, axis=axis)
    base = alt.Chart()
    circle = base.transform_filter(alt.datum.part == "unit circle").mark_line(color=COLOURS[7], strokeWidth=1.5)
    crosses = base.transform_filter(alt.datum.part == "pole").mark_point(
        shape="cross", angle=45, size=150, filled=True, color=COLOURS[1], opacity=1
    )
    tips = [alt.Tooltip("re:Q", format=".3f"), alt.Tooltip("im:Q", format=".3f")]
    return charts.specification(
        (circle.encode(x=x, y=y, order="order:Q") + crosses.encode(x=x, y=y, tooltip=tips))
        .properties(width=SIDE, height=SIDE, autosize="pad")
        .configure_view(strokeWidth=0)
    )


def drawable(errors: np.ndarray) -> np.ndarray:
    """Return the errors (..., n) with NaN from the first one that is too large to draw."""
    gone = np.maximum.accumulate(np.abs(errors) > DIVERGED, axis=-1)
    return np.where(gone, np.nan, errors)


def step_panels(loop: Loop) -> list[Panel]:
    """Return panels of error and α of the linear loop."""
    found = loop.response()
    errors = drawable(found.error.numpy())
    level = np.full(len(errors), loop.band)
    alpha = np.where(np.isnan(errors), np.nan, found.alpha.numpy())
    return [
        Panel(title="Error e (nats)", frame=charts.table({"error": errors, "band above": level, "band below": -level})),
        Panel(title="α", frame=charts.table({"α": alpha})),
    ]


def side_by_side(title: str, series: dict[str, np.ndarray]) -> Panel:
    """Return one panel with several kinds of runs, (runs, n) each."""
    return Panel(title=title, frame=charts.bands({name: np.atleast_2d(runs) for name, runs in series.items()}))
