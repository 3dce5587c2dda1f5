"""The picture of `toybandit.picture`: GRPO beside a thermostat, drawn once the reader has predicted how they end."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from entrostat.about.colours import colour_of
from toybandit import picture
from toybandit.picture import CHOICES, HELD, PAYS, PLAIN, Side

from ...shared import charts
from ...shared.charts import Panel, Picture
from ...shared.picture_target import PICTURE_TARGET
from ...shared.room import room

KEY = "picture"
"""Beginning of the keys of its controls."""
TARGET = replace(PICTURE_TARGET, key=f"{KEY}.target")
LINES, BARS = 260, 165
"""Heights of the lines and of the bars, pixels."""
ANSWER = 110
"""Height that is kept free for the answer, pixels."""


def draw() -> None:
    """Draw setting, prediction, slider and answer on the left, both runs on the right."""
    left, right = st.columns([3, 7], gap="medium")
    with left:
        st.markdown(picture.SETTING)
        guess = st.radio(f"**Predict.** {picture.QUESTION}", CHOICES, index=None, key=f"{KEY}-guess")
        target = TARGET.draw()
        answer = room(f"{KEY}-answer", ANSWER)
    runs = both(target) if guess else {}
    with right:
        for column, panel in zip(st.columns(2), panels(runs, target), strict=True):
            with column:
                charts.show(charts.linked([panel], "rollout", height=LINES), key=f"{KEY}-{panel.title}")
        for column, name in zip(st.columns(2), (PLAIN, HELD), strict=True):
            with column:
                draw_policy(name, runs.get(name))
    with answer:
        if guess:
            right_one, words = picture.verdict(runs)
            told = "As predicted." if guess == right_one else "Not as predicted."
            show = st.success if guess == right_one else st.warning
            show(f"**{told}** {words}")
        else:
            st.info("Choose an answer. The runs are drawn then.", icon=":material/arrow_upward:")
    for near in (target + picture.STEP, target - picture.STEP) if guess else (target,):
        both(min(max(near, 0.0), picture.HIGHEST))  # all is drawn: the next move finds its runs


def both(target: float) -> dict[str, Side]:
    """Return both runs by name."""
    return {PLAIN: side(PLAIN, 0.0), HELD: side(HELD, round(target, 9))}


@st.cache_resource(max_entries=64, show_spinner=False)
def side(name: str, target: float) -> Side:
    """Return a run, simulated once for all sessions, which do not write to it."""
    return picture.side(name, target)


def panels(runs: Mapping[str, Side], target: float) -> list[Panel]:
    """Return the panels of entropy, with the target, and of pass@K; without runs they have no other line."""
    moments = picture.config(PLAIN).environment().rollouts + 1
    blank = np.full((1, moments), np.nan)
    entropy, passed = (
        {name: getattr(runs[name], what) if runs else blank for name in (PLAIN, HELD)} for what in ("entropy", "passed")
    )
    entropy["target"] = np.full((1, moments), target)
    return [
        Panel(title="Entropy H (nats)", frame=charts.bands(entropy), limits=(0, picture.TOP)),
        Panel(title=f"pass@{picture.K}", frame=charts.bands(passed), limits=(0, 1)),
    ]


def draw_policy(name: str, run: Side | None) -> None:
    """Draw the last policy of a run as bars, or the first policy of both if there is no run yet."""
    shown = side(PLAIN, 0.0).policy[0] if run is None else run.policy[-1]
    told = "first policy" if run is None else f"last policy, reward {run.reward[:, -1].mean():.2f}"
    st.markdown(f"**{name}**: {told}")
    frame = pd.DataFrame({"answer": np.arange(len(shown)), "probability": shown})
    bars = Picture(_bars_spec(colour_of(name), len(shown)), frame, f"Bars: probability of each answer under {name}.")
    charts.show(bars, key=f"{KEY}-policy-{name}")


@lru_cache
def _bars_spec(colour: str, count: int) -> dict[str, Any]:
    places = dict(zip((0, count // 2, count - 1), PAYS, strict=True))
    text = " : ".join(f"datum.value == {place} ? '{words}'" for place, words in places.items())
    sides = [{"test": f"datum.value == {place}", "value": side} for place, side in ((0, "left"), (count - 1, "right"))]
    axis = alt.Axis(
        title=None,
        labelExpr=f"{text} : ''",
        labelAngle=0,
        labelAlign={"condition": sides, "value": "center"},
        labelOverlap=False,
        labelLimit=0,
        ticks=False,
    )
    return charts.specification(
        alt.Chart()
        .mark_bar(color=colour)
        .encode(
            x=alt.X("answer:O", axis=axis),
            y=alt.Y("probability:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=2)),
            tooltip=["answer:O", alt.Tooltip("probability:Q", format=".3f")],
        )
        .properties(height=BARS)
    )
