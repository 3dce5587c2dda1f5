"""Diagnosis of one run: the facts, the advice and the settings to paste that `llmtrain diagnose` prints."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from entrostat.logs.diagnosis import words
from entrostat.logs.diagnosis.advice import Advice, advise
from entrostat.logs.diagnosis.events import Happened
from entrostat.logs.diagnosis.facts import measure, reads
from entrostat.logs.diagnosis.numbers import numbers
from entrostat.logs.diagnosis.sketch import CURVES, is_logarithmic
from entrostat.logs.foreign.metric_names import LOOKS_LIKE, candidates, wrote

from ...shared import charts
from ...shared.charts import Picture
from ...shared.controls import Control
from ...shared.palette import COLOURS
from ...shared.plain_text import plain
from . import runs_parts as parts
from .run_log import Log

TARGET = Control(
    key="runs.target",
    label="Target entropy",
    unit="nats",
    default=None,
    help="Target of the run's controller, if its log does not have it.",
)
LANGUAGES = {"TRL": "python", "verl": "shell", "llmtrain": "shell"}
"""Language of the settings, by trainer."""


FOLDED = ("Does entropy predict reward?",)
"""Sections that are folded at first."""
MOST_POINTS = 800
"""Upper limit for the points of a curve."""


def settings(logs: Sequence[Log]) -> dict[str, Any]:
    name = parts.one_run(logs, logs[0].name)
    log = next((log for log in logs if log.name == name), logs[0])
    chosen = {}
    for ours in ("entropy", "reward"):
        if ours not in log.metrics and (found := candidates(ours, log.metrics)):
            chosen[ours] = st.selectbox(f"Metric that is the {ours}", found, index=None, key=f"runs.is_{ours}")
    return {"name": name, "target": TARGET.draw(), **chosen}


def draw(root: Path, logs: Sequence[Log], name: str, target: float | str | None, **columns: str | None) -> None:
    """Draw what happened in a run, and below it what was measured and what to try.

    columns: metrics that are one of entrostat's, such as `entropy`. Raises ValueError if the target is no number.
    """
    if isinstance(target, str):
        raise ValueError(f"the target is a number in nats, not {target!r}")
    log = next((log for log in logs if log.name == name), logs[0])
    lines = metrics(log, columns)
    found = measure(lines, {} if log.foreign is not None else log.config, target)
    verdict, *others = words.sections(found)
    st.header(plain(verdict.lines[0]), anchor=False)
    if drawn := picture(lines, found.happened):
        charts.show(drawn, key="runs.diagnosis")
    for line in verdict.lines[1:]:
        st.caption(plain(line))
    left, right = st.columns(2, gap="medium")
    with left:
        st.header("What was measured", anchor=False)
        for section in others:
            if section.title in FOLDED:
                with st.expander(plain(section.title)):
                    draw_lines(section)
            else:
                st.markdown(f"**{plain(section.title)}**")
                draw_lines(section)
    with right:
        st.header("What to try", anchor=False)
        advice = advise(found)
        for one in advice:
            draw_advice(one, wrote(log.foreign.translated) if log.foreign else "llmtrain", expanded=one is advice[0])
        if not advice:
            st.caption(words.NO_RULE)
        if any(one.settings for one in advice):
            going_on = words.going_on(found)
            with st.expander(plain(going_on.title)):
                draw_lines(going_on)


def metrics(log: Log, columns: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Return what a diagnosis reads of a run, a mapping for each step; of several seeds, the mean.

    A step that has none of that has one other metric: it is a step all the same.
    """
    named = {theirs: ours for ours, theirs in columns.items() if theirs in log.metrics}
    lines: dict[int, dict[str, Any]] = {}
    known = {name: reads(named.get(name, name)) or _resembles(name) for name in log.metrics}
    for name in sorted(log.metrics, key=lambda name: not known[name]):
        series = log.metrics[name]
        for step, value in zip(series.step.tolist(), series.values.mean(0).tolist(), strict=True):
            if known[name] or int(step) not in lines:
                lines.setdefault(int(step), {"step": int(step)})[named.get(name, name)] = value
    return [lines[step] for step in sorted(lines)]


def _resembles(name: str) -> bool:
    return any(name in candidates(one, [name]) for one in LOOKS_LIKE)


def picture(lines: Sequence[Mapping[str, Any]], happened: Happened) -> Picture | None:
    """Return entropy and reward above each other, with the steps of the events; None if neither was logged."""
    curves = {title: found for name, title in CURVES.items() if len((found := numbers(lines, name))[0]) > 1}
    if not curves:
        return None
    frames = [
        pd.DataFrame({"x": at, "value": values, "panel": title}).iloc[charts.thinned(len(at), MOST_POINTS)]
        for title, (at, values) in curves.items()
    ]
    marks = pd.DataFrame([{"event": step, "word": f"{word} {step}"} for step, word in happened.marks])
    logarithmic = tuple(is_logarithmic(values) for _, values in curves.values())
    at = np.concatenate([steps for steps, _ in curves.values()])
    spec = _spec(tuple(curves), logarithmic, bool(len(marks)), float(at.min()), float(at.max()))
    return Picture(spec, pd.concat([*frames, marks]), charts.lines_alt(list(curves), "steps, with events marked"))


@lru_cache(maxsize=16)
def _spec(
    titles: tuple[str, ...], logarithmic: tuple[bool, ...], marked: bool, low: float, high: float
) -> dict[str, Any]:
    panels: list[Any] = []
    across = alt.Scale(domain=[low - charts.MARGIN * (high - low), high], nice=False)
    for title, log, colour in zip(titles, logarithmic, COLOURS, strict=False):
        scale = alt.Scale(type="log" if log else "linear", zero=not log)
        line = alt.Chart().transform_filter(alt.datum.panel == title).mark_line(strokeWidth=2, color=colour)
        last = len(panels) == len(titles) - 1
        axis = alt.Axis(values=charts.round_ticks(low, high), labels=last, ticks=False, labelFlush=True)
        y = alt.Y("value:Q", scale=scale, axis=charts.INSIDE)
        x = alt.X("x:Q", title="step" if last else None, scale=across, axis=axis)
        layers: list[Any] = [
            line.encode(x=x, y=y, tooltip=[alt.Tooltip("x:Q", title="step"), alt.Tooltip("value:Q", format=".4g")])
        ]
        if marked:
            event = alt.Chart().transform_filter("isValid(datum.event)")
            layers.append(event.mark_rule(strokeDash=[4, 3], color="#888888").encode(x="event:Q"))
            if not panels:
                text = event.mark_text(align="left", dx=4, baseline="top", y=2)
                layers.append(text.encode(x="event:Q", text="word:N"))
        heading = alt.Title(title, anchor="start", fontSize=13, offset=4)
        panels.append(alt.layer(*layers).properties(title=heading, height=charts.HEIGHT))
    stacked = alt.vconcat(*panels, spacing=14).resolve_scale(x="shared")
    return charts.specification(stacked.configure_view(strokeWidth=0))


def draw_lines(section: words.Section) -> None:
    """Draw the sentences of a section as a list."""
    st.markdown("\n".join(f"- {plain(line)}" for line in section.lines))


def draw_advice(one: Advice, trainer: str, expanded: bool) -> None:
    """Draw the settings of advice, a tab for each trainer, opened on that of the run, and its evidence folded."""
    section = words.told(one)
    with st.expander(plain(section.title), expanded=expanded):
        if one.choice:
            st.markdown(plain(f"Supported: {one.choice}."))
        if one.settings:
            default = trainer if trainer in one.settings else None
            for tab, (name, text) in zip(
                st.tabs(list(one.settings), default=default), one.settings.items(), strict=True
            ):
                tab.code(text, language=LANGUAGES[name], wrap_lines=True)
        with st.popover("Evidence") if one.settings else nullcontext():
            draw_lines(section)
