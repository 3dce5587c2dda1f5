"""Learn: a course of seven lessons, from the trap of a collapsed policy to what a model forgets.

In each lesson one predicts, moves a control of two or three runs side by side, and reads the answer.
"""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from toybandit import Trajectory

from ...menu import streamlit_page
from ...shared import charts, presets
from ...shared.charts import Panel, Picture
from ...shared.controls import Control
from . import linked_words
from .lessons import LESSONS, SEEDS, Lesson

MINUTES = sum(lesson.minutes for lesson in LESSONS)
"""Time that a class takes for the course."""
STEP = Control(
    key="step",
    label="Lesson",
    default="1",
    options=tuple(str(number + 1) for number in range(len(LESSONS))),
    help="The course goes from the trap of a collapsed policy to what a model forgets.",
)
TO_THE_TOP = "document.querySelector('[data-testid=stMain]')?.scrollTo(0, 0);"
"""JavaScript that scrolls to the top of the page."""
PICTURE = "[data-testid=stVegaLiteChart]"
"""Selector of the picture."""
TARGET = "target"
"""Name of the target among the series of a picture."""


def page() -> None:
    """Draw one lesson: words, prediction, control, picture, answer and navigation buttons."""
    st.title("Learn")
    st.caption(f"{len(LESSONS)} lessons, {MINUTES} minutes. Every picture is simulated live; nothing is drawn by hand.")
    with st.sidebar:
        number = int(STEP.draw())
    lesson = LESSONS[number - 1]
    st.html(f"<script>/* {number} */ {TO_THE_TOP}</script>", unsafe_allow_javascript=True)
    st.header(f"{number}. {lesson.title}")
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.html(f"<p>{linked_words.html(f'{lesson.setting} {lesson.text}')}</p>")
        st.caption("Point at or tap a dotted word: its part of the picture lights up.")
        guess = st.radio(f"**Predict.** {lesson.question}", lesson.choices, index=None, key=f"predict-{number}")
    with right:
        value = lesson.move.draw()
        runs = lesson.simulate(value)
        shown = picture(runs, lesson.pass_k)
        charts.show(shown, key="tour")
        series = list(dict.fromkeys(shown.frame["series"]))
        st.html(f"<style>{linked_words.style('[data-testid=stMain]', PICTURE, series)}</style>")
        st.caption(summary(runs))
        with st.expander("Answer"):
            st.markdown(answer(lesson, runs, guess))
            st.html(f"<p>{linked_words.html(lesson.why)}</p>")
            st.markdown(
                "In the papers: " + "; ".join(f"[{source.name}]({source.address})" for source in lesson.sources)
            )
    st.markdown(f"**Try it.** {lesson.next}")
    draw_navigation(number)
    if number == len(LESSONS):
        draw_end()
    for near in lesson.beside(value):  # all is drawn: the next move finds its runs
        lesson.simulate(near)


def draw_navigation(number: int) -> None:
    """Draw the ways to the lessons before and after, and into the playground."""
    with st.container(horizontal=True):
        st.button("Back", on_click=_go, args=(number - 1,), disabled=number == 1, icon=":material/arrow_back:")
        last = number == len(LESSONS)
        st.button("Next", on_click=_go, args=(number + 1,), disabled=last, icon=":material/arrow_forward:")
        presets.link(presets.PRESETS[LESSONS[number - 1].goes_on], "Open in the playground")


def draw_end() -> None:
    """Draw the end of the course, which leads to one's own log."""
    st.subheader("Now on your own log", anchor=False)
    st.markdown(
        "Drop a log of TRL, verl, OpenRLHF, W&B or TensorBoard on the page Runs. Its section Diagnosis says when "
        "entropy collapsed, what to try, and which settings to paste."
    )
    query = {"runs.show": "Diagnosis"}
    st.page_link(streamlit_page("runs"), label="Open Runs", icon=":material/folder_open:", query_params=query)


def _go(number: int) -> None:
    st.session_state["step"] = str(number)


def answer(lesson: Lesson, runs: Mapping[str, Trajectory], guess: str | None) -> str:
    """Return the verdict of the runs, after a word on the prediction if there was one."""
    told = "" if guess is None else "As predicted. " if guess == lesson.right(runs) else "Not as predicted. "
    return f"{lesson.question} **{told}{lesson.verdict(runs)}**"


def panels(runs: Mapping[str, Trajectory], k: int | None = None) -> list[Panel]:
    """Return the panels of entropy, with the target if there is one, reward and pass@k; means and ranges over seeds.

    k: None draws no pass@k, which is that on held-out prompts if there are some.
    """
    entropy = {name: run.entropy for name, run in runs.items()}
    targets = [run.target for run in runs.values() if run.target is not None]
    if targets:
        entropy[TARGET] = np.column_stack([targets[0][:1], targets[0][:1, -1:]])
    found = [
        Panel(title="Entropy H (nats)", frame=charts.bands(entropy)),
        Panel(title="Expected reward", frame=charts.bands({name: run.reward for name, run in runs.items()})),
    ]
    if k is None:
        return found
    shown = charts.held_out(runs, k)
    if shown is None:
        shown = Panel(title=f"pass@{k}", frame=charts.bands({name: run.pass_at(k) for name, run in runs.items()}))
    return [*found, shown]


def picture(runs: Mapping[str, Trajectory], k: int | None = None) -> Picture:
    """Return the picture of the panels over one time axis."""
    return charts.linked(panels(runs, k), "rollout", height=190 if k is None else 150)


def summary(runs: Mapping[str, Trajectory]) -> str:
    """Return a description of the picture."""
    parts = [
        f"{name} from {run.entropy[:, 0].mean():.2f} to {run.entropy[:, -1].mean():.2f} nats"
        for name, run in runs.items()
    ]
    return f"Entropy over the rollouts, mean of {len(SEEDS)} seeds: {'; '.join(parts)}."
