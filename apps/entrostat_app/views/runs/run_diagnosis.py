"""Diagnosis of one run: the facts, the advice and the settings to paste that `llmtrain diagnose` prints."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from entrostat.logs.diagnosis import words
from entrostat.logs.diagnosis.advice import Advice, advise
from entrostat.logs.diagnosis.facts import Facts, measure, reads

from ...shared.controls import Control
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


def settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"name": parts.one_run(logs, logs[0].name), "target": TARGET.draw()}


def draw(root: Path, logs: Sequence[Log], name: str, target: float | str | None) -> None:
    """Draw what was measured in a run, and beside it what to try. Raises ValueError if the target is no number."""
    if isinstance(target, str):
        raise ValueError(f"the target is a number in nats, not {target!r}")
    found = facts(next((log for log in logs if log.name == name), logs[0]), target)
    left, right = st.columns(2, gap="medium")
    with left:
        st.header("What happened", anchor=False)
        for section in words.sections(found):
            draw_section(section)
    with right:
        st.header("What to try", anchor=False)
        advice = advise(found)
        for one in advice:
            draw_advice(one, expanded=one is advice[0])
        if not advice:
            st.caption(words.NO_RULE)


def facts(log: Log, target: float | None) -> Facts:
    """Return the facts of a run; of several seeds, of their mean."""
    lines: dict[int, dict[str, Any]] = {}
    for name, series in log.metrics.items():
        if reads(name):
            for step, value in zip(series.step.tolist(), series.values.mean(0).tolist(), strict=True):
                lines.setdefault(int(step), {"step": int(step)})[name] = value
    config = {} if log.foreign is not None else log.config
    return measure([lines[step] for step in sorted(lines)], config, target)


def draw_section(section: words.Section) -> None:
    """Draw a heading and its sentences as a list."""
    st.markdown(f"**{plain(section.title)}**")
    st.markdown("\n".join(f"- {plain(line)}" for line in section.lines))


def draw_advice(one: Advice, expanded: bool) -> None:
    """Draw advice with its evidence, and the settings of each trainer in a tab."""
    section = words.told(one)
    with st.expander(plain(section.title), expanded=expanded):
        st.markdown("\n".join(f"- {plain(line)}" for line in section.lines))
        if one.settings:
            for tab, (trainer, text) in zip(st.tabs(list(one.settings)), one.settings.items(), strict=True):
                tab.code(text, language=LANGUAGES[trainer], wrap_lines=True)
