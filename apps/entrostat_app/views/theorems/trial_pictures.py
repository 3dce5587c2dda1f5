"""Picture of a trial: predicted and measured values, and their difference below."""

from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from toybandit.trials import Outcome

from ...shared import charts
from ...shared.charts import Panel, Picture
from ...shared.palette import COLOURS, DASHES

MEASURED, PREDICTED, RESIDUAL = "measured", "predicted", "measured − predicted"
HEIGHT = 200
FEW = 12
"""Largest number of points for which each point is marked."""
ROOM = 44
"""Padding on both sides of the points, pixels: room for the labels of the vertical axis on the left."""


def picture(outcome: Outcome) -> Picture:
    """Return the picture of predicted and measured values over x, and of the residual."""
    top = {MEASURED: outcome.measured, PREDICTED: outcome.predicted}
    joined = not (outcome.points or outcome.names)
    if joined and len(outcome.x) > FEW and not outcome.log_x and not outcome.log_y:
        panels = [
            Panel(title=outcome.y_title, frame=charts.table(top, outcome.x)),
            Panel(title=RESIDUAL, frame=charts.table({RESIDUAL: outcome.residual}, outcome.x)),
        ]
        return charts.linked(panels, outcome.x_title, height=160)
    residual = np.abs(outcome.residual) if outcome.log_y else outcome.residual
    frames = [
        charts.table(top, outcome.x).assign(panel="top"),
        charts.table({RESIDUAL: residual}, outcome.x).assign(panel="bottom"),
    ]
    frame = pd.concat(frames, ignore_index=True)
    if outcome.log_y:
        frame = frame[frame["value"] > 0]
    if outcome.names:
        frame["name"] = np.array(outcome.names)[frame["x"].astype(int)]
    log = (outcome.log_x, outcome.log_y)
    spec = _spec(outcome.x_title, outcome.y_title, log, joined, outcome.names)
    return Picture(
        spec, frame, f"{outcome.y_title} against {outcome.x_title}: measured, predicted, and their difference."
    )


@lru_cache(maxsize=64)
def _spec(x_title: str, y_title: str, log: tuple[bool, bool], joined: bool, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the specification: points, joined by lines or not, over linear or logarithmic axes or over names."""
    parts = []
    for panel, title in (("top", y_title), ("bottom", f"|{RESIDUAL}|" if log[1] else RESIDUAL)):
        last = panel == "bottom"
        x = alt.X("x:Q", title=x_title if last else None, scale=_scale(log[0], padding=ROOM), axis=_axis(names, last))
        inside = alt.Axis(**{**charts.INSIDE.to_dict(), "format": "~g"})
        y = alt.Y("value:Q", scale=_scale(log[1], zero=bool(names)), axis=inside)
        base = alt.Chart().transform_filter(alt.datum.panel == panel)
        where = alt.Tooltip("name:N", title=x_title) if names else alt.Tooltip("x:Q", title=x_title, format=".4g")
        layers = _marks(base.encode(x=x, y=y), where, title, joined, last)
        if last and not log[1]:
            zero = base.transform_aggregate(count="count()").mark_rule(color="#888888", strokeWidth=1)
            layers.insert(0, zero.encode(y=alt.datum(0)))
        heading = alt.Title(title, anchor="start", fontSize=13, offset=4)
        parts.append(alt.layer(*layers).properties(title=heading, height=110 if last else HEIGHT))
    stacked = alt.vconcat(*parts, spacing=14)
    stacked = stacked.resolve_scale(x="shared", color="independent", shape="independent", strokeDash="independent")
    return charts.specification(stacked.configure_view(strokeWidth=0))


def _scale(log: bool, **options: Any) -> alt.Scale:
    """Return a scale that starts at 0 only if this is asked for and the axis is linear."""
    if log:
        return alt.Scale(type="log", nice=False, **{**options, "zero": False})
    return alt.Scale(nice="padding" not in options, **{"zero": False, **options})


def _axis(names: tuple[str, ...], last: bool) -> alt.Axis:
    """Return the horizontal axis; only the last panel has labels."""
    if names:
        texts = f"{list(names)}[datum.value]"
        return alt.Axis(values=list(range(len(names))), labelExpr=texts, grid=False, labels=last, ticks=False)
    return alt.Axis(tickCount=6, labelOverlap=True, labels=last, ticks=False)


def _marks(base: Any, where: alt.Tooltip, title: str, joined: bool, last: bool) -> list[Any]:
    """Return points, circles for measured and diamonds for predicted values, and lines if they are joined."""
    series = [RESIDUAL] if last else [MEASURED, PREDICTED]
    legend = None if last else alt.Legend(title=None, orient="top", offset=0, symbolSize=90)
    many = len(series)
    colour = alt.Color("series:N", scale=alt.Scale(domain=series, range=list(COLOURS[:many])), legend=legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=series, range=["circle", "diamond"][:many]), legend=legend)
    tips = [alt.Tooltip("series:N", title="series"), where, alt.Tooltip("value:Q", title=title, format=".4g")]
    points = base.mark_point(size=70, strokeWidth=1.5, opacity=0.85)
    layers = [points.encode(color=colour, shape=shape, tooltip=tips)]
    if joined:
        dashes = alt.Scale(domain=series, range=[list(dash) for dash in DASHES[:many]])
        dash = alt.StrokeDash("series:N", scale=dashes, legend=None)
        layers.insert(0, base.mark_line(strokeWidth=2).encode(color=colour, strokeDash=dash))
    return layers
