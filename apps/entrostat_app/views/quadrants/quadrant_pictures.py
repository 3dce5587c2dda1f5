"""Pictures of tokens: the entropy change over p and H, tokens in their quadrants, and quadrants under controllers."""

from functools import lru_cache
from math import log
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
import torch

from entrostat.about.description import QUADRANTS
from toybandit.rollout_tokens import RolloutTokens
from toybandit.token_surface import boundary, surface

from ...shared import charts
from ...shared.charts import Picture
from ...shared.palette import COLOURS

CELLS = (44, 32)
"""Cells of the surface along p and H."""
LINE_POINTS = 60
BOUNDARIES = ("e^(−H)", "p*")
ALIGNED: tuple[Literal["left", "right"], ...] = ("right", "left")
"""Sides of the names of BOUNDARIES."""
SHAPES = ("circle", "triangle-up", "square", "diamond")
NAMES = {name: f"{name}: {what.removesuffix(' token')}" for name, what in QUADRANTS.items()}
"""Names of the quadrants in legends."""
HEIGHT, PLOT = 400, 320
"""Height of the pictures of tokens, and of their plots alone, pixels."""
KEPT, STOPPED = "kept", "stopped or dropped"
RELATIVE, ABSOLUTE = "p relative to e^(−H)", "p"


@st.cache_data(max_entries=32, show_spinner=False)
def cells(formula: str, arms: int) -> pd.DataFrame:
    """Return the cells of the surface that some state can have: columns p, p2, entropy, entropy2, flow, part."""
    grid = surface(formula, arms, CELLS)
    half_p, half_h = 0.52 / CELLS[0], 0.52 / CELLS[1] * log(arms)  # a small overlap hides seams
    p, entropy, flow = (x.flatten().numpy() for x in grid)
    frame = pd.DataFrame(
        {"p": p - half_p, "p2": p + half_p, "entropy": entropy - half_h, "entropy2": entropy + half_h, "flow": flow}
    )
    return frame.dropna().assign(part="cell")


@st.cache_data(max_entries=8, show_spinner=False)
def boundaries(arms: int) -> pd.DataFrame:
    """Return e^(−H), and p* if the other arms share 1 − p geometrically: columns p, entropy, part, and name once."""
    entropy = torch.linspace(0.02, log(arms) - 0.02, LINE_POINTS, dtype=torch.float64)
    lines = {BOUNDARIES[0]: (-entropy).exp(), BOUNDARIES[1]: boundary(entropy, arms)}
    frames = [
        pd.DataFrame({"p": p.numpy(), "entropy": entropy.numpy(), "part": name}).dropna() for name, p in lines.items()
    ]
    return pd.concat(frame.assign(name=frame["part"].where(frame.index == LINE_POINTS // 2)) for frame in frames)


def surface_picture(formula: str, arms: int, tokens: RolloutTokens | None) -> Picture:
    """Return the picture of a unit-weight token's entropy change over p and H, with boundaries and a run's tokens."""
    found = cells(formula, arms)
    limit = float(f"{np.quantile(found['flow'].abs(), 0.95):.1g}")
    parts = [found, boundaries(arms)]
    if tokens is not None:
        places = pd.DataFrame({"p": tokens.p, "entropy": tokens.entropy}).round(6)
        parts.append(places.value_counts().rename("tokens").reset_index().assign(part="token"))
    words = "Entropy change of a token over its probability and its state's entropy, with both boundaries of its sign."
    return Picture(_surface_spec(limit, log(arms)), pd.concat(parts, ignore_index=True), words)


@lru_cache
def _surface_spec(limit: float, top: float) -> dict[str, Any]:
    base = alt.Chart()
    x = alt.X("p:Q", title="probability p of the token", scale=alt.Scale(domain=[0, 1], nice=False, clamp=True))
    y = alt.Y(
        "entropy:Q", title="entropy H of its state (nats)", scale=alt.Scale(domain=[0, top], nice=False, clamp=True)
    )
    colour = alt.Color(
        "flow:Q",
        scale=alt.Scale(domain=[-limit, 0, limit], scheme="purpleorange", clamp=True),
        legend=alt.Legend(title="ΔH per unit of weight (nats)", orient="top", gradientLength=220, titleLimit=300),
    )
    dashes = alt.Scale(domain=list(BOUNDARIES), range=[[5, 3], [1, 0]])
    dash = alt.StrokeDash("part:N", scale=dashes, legend=None)
    tips = [alt.Tooltip("p:Q", format=".2f"), alt.Tooltip("entropy:Q", title="H", format=".2f")]
    rects = base.transform_filter(alt.datum.part == "cell").mark_rect(stroke=None)
    both = base.transform_filter(alt.FieldOneOfPredicate("part", list(BOUNDARIES)))
    lines = both.mark_line(color=COLOURS[2], strokeWidth=3)
    names = [
        base.transform_filter(alt.datum.name == name)
        .mark_text(align=align, dx=8 if align == "left" else -8, fontSize=14, fontWeight="bold", color="black")
        .encode(x=x, y=y, text="name:N")
        for name, align in zip(BOUNDARIES, ALIGNED, strict=True)
    ]
    dots = base.transform_filter(alt.datum.part == "token").mark_point(
        filled=True, color=COLOURS[0], stroke="white", strokeWidth=0.5, opacity=0.85
    )
    size = alt.Size("tokens:Q", scale=alt.Scale(domain=[1, 16], range=[18, 160], clamp=True), legend=None)
    return charts.specification(
        alt.layer(
            rects.encode(
                x=x, x2="p2:Q", y=y, y2="entropy2:Q", color=colour, tooltip=[*tips, alt.Tooltip("flow:Q", format=".3f")]
            ),
            lines.encode(x=x, y=y, strokeDash=dash, order="entropy:Q"),
            dots.encode(x=x, y=y, size=size, tooltip=[*tips, "tokens:Q"]),
            *names,
        )
        .properties(height=PLOT, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure_view(strokeWidth=0)
    )


def token_frame(tokens: RolloutTokens, *, exact: bool) -> pd.DataFrame:
    """Return a row for each kind of token with an advantage, and the number of such tokens, for the scatter plot."""
    frame = pd.DataFrame(
        {
            "p": tokens.p,
            "relative": tokens.p * np.exp(tokens.entropy),
            "entropy": tokens.entropy,
            "advantage": tokens.advantage,
            "flow": tokens.flow,
            "weight": tokens.weight,
            "kept": np.where(tokens.kept, KEPT, STOPPED),
            "quadrant": tokens.quadrant(exact=exact),
        }
    )
    acting = frame[frame["quadrant"] != ""]
    return acting.assign(quadrant=acting["quadrant"].map(NAMES)).round(9).value_counts().rename("tokens").reset_index()


def token_picture(tokens: RolloutTokens, *, exact: bool, axis: str) -> Picture:
    """Return the picture of tokens by probability and effect on the entropy; axis: RELATIVE or ABSOLUTE."""
    frame = token_frame(tokens, exact=exact)
    most = float(np.ceil(1.05 * frame["relative"].max())) if len(frame) else 2.0
    words = "Tokens of an update by their probability and their effect on the entropy, marked by quadrant."
    return Picture(_token_spec(axis, most), frame, words)


@lru_cache
def _token_spec(axis: str, most: float) -> dict[str, Any]:
    base = alt.Chart()
    if axis == RELATIVE:
        scale = alt.Scale(type="sqrt", domain=[0, most], nice=False)
        ticks = alt.Axis(format="~g", values=[0, 0.1, 0.5, 1, 2, 3, 5, 8, 12, 16], grid=False)
        x = alt.X("relative:Q", title="p·e^H: right of 1 the token is likely", scale=scale, axis=ticks)
    else:
        x = alt.X("p:Q", title="probability p of the token", scale=alt.Scale(domain=[0, 1], nice=False))
    room = alt.Scale(padding=18)  # for the names in the corners
    y = alt.Y("flow:Q", title="ΔH of the token (nats per unit step)", axis=alt.Axis(format="~g"), scale=room)
    size = alt.Size("weight:Q", scale=alt.Scale(domain=[0, 2], range=[10, 260], clamp=True), legend=None)
    tips = [
        "quadrant:N",
        alt.Tooltip("p:Q", format=".4f"),
        alt.Tooltip("entropy:Q", title="H", format=".3f"),
        alt.Tooltip("advantage:Q", title="A", format=".3f"),
        alt.Tooltip("flow:Q", title="ΔH", format=".4f"),
        alt.Tooltip("weight:Q", format=".3f"),
        "kept:N",
        "tokens:Q",
    ]
    level = base.mark_rule(color=COLOURS[7]).encode(y=alt.datum(0))
    looks = {"color": _quadrant_colour(), "shape": _quadrant_shape(), "size": size, "tooltip": tips}
    kept = base.transform_filter(alt.datum.kept == KEPT).mark_point(filled=True, opacity=0.75)
    stopped = base.transform_filter(alt.datum.kept == STOPPED).mark_point(filled=False, opacity=1, strokeWidth=1.5)
    layers = [level, kept.encode(x=x, y=y, **looks), stopped.encode(x=x, y=y, **looks), *_corners()]
    if axis == RELATIVE:
        layers.insert(1, base.mark_rule(color=COLOURS[7]).encode(x=alt.datum(1.0, type="quantitative", scale=scale)))
    return charts.specification(
        alt.layer(*layers)
        .properties(height=PLOT, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure_view(strokeWidth=0)
    )


def comparison_picture(frame: pd.DataFrame, measure: str, title: str) -> Picture:
    """Return the picture of a frame of `token_plans.compared`: a bar for each controller and quadrant."""
    shown = frame.assign(quadrant=frame["quadrant"].map(NAMES), letter=frame["quadrant"])
    names = tuple(frame["controller"].unique())
    return Picture(
        _comparison_spec(names, measure, title), shown, f"Bars: {title} in each quadrant under {', '.join(names)}."
    )


@lru_cache
def _comparison_spec(controllers: tuple[str, ...], measure: str, title: str) -> dict[str, Any]:
    base = alt.Chart()
    names = list(NAMES.values())
    x = alt.X("value:Q", title=title, axis=alt.Axis(format="~r", tickCount=6))
    y = alt.Y(
        "controller:N",
        scale=alt.Scale(domain=list(controllers)),
        title=None,
        axis=alt.Axis(labelLimit=180, ticks=False),
    )
    inside = alt.YOffset("quadrant:N", sort=names)
    tips = ["controller:N", "quadrant:N", "tokens:Q", alt.Tooltip("value:Q", title=measure, format=".4g")]
    bars = base.mark_bar(height=3).encode(x=x, y=y, yOffset=inside, color=_quadrant_colour(), tooltip=tips)
    ends = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, y=y, yOffset=inside, color=_quadrant_colour(), shape=_quadrant_shape(), tooltip=tips
    )
    letters = base.mark_text(align="left", dx=7, fontSize=9).encode(
        x=x, y=y, yOffset=inside, color=_quadrant_colour(), text="letter:N"
    )
    return charts.specification(
        (bars + ends + letters)
        .properties(height=60 * len(controllers), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure_view(strokeWidth=0)
    )


def _corners() -> list[Any]:
    """Return the names of the quadrants as layers, each in the corner where its tokens are."""
    one = alt.Chart().transform_aggregate(count="count()")
    found = []
    for (name, text), colour in zip(NAMES.items(), COLOURS, strict=False):
        right, below = name in ("I", "IV"), name in ("I", "III")
        mark = one.mark_text(
            text=text,
            align="right" if right else "left",
            baseline="bottom" if below else "top",
            dx=-4 if right else 4,
            fontWeight="bold",
            color=colour,
        )
        across, down = ("width" if right else 0), ("height" if below else 0)
        found.append(mark.encode(x=alt.value(across), y=alt.value(down)))
    return found


def _quadrant_colour() -> alt.Color:
    return alt.Color("quadrant:N", scale=alt.Scale(domain=list(NAMES.values()), range=list(COLOURS[:4])), legend=None)


def _quadrant_shape() -> alt.Shape:
    return alt.Shape("quadrant:N", scale=alt.Scale(domain=list(NAMES.values()), range=list(SHAPES)), legend=None)
