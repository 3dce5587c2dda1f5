"""Learn: a course of seven lessons, from the trap of a collapsed policy to what a model forgets.

In each lesson one predicts, which draws two or three runs side by side with the answer, and moves a control of them.
"""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from toybandit import Trajectory

from ...menu import streamlit_page
from ...shared import charts, presets
from ...shared.charts import Panel, Picture
from ...shared.controls import Sections
from ...shared.room import room
from . import linked_words
from .lessons import LESSONS, SEEDS, Lesson

MINUTES = sum(lesson.minutes for lesson in LESSONS)
"""Time that a class takes for the course."""
STEP = Sections(
    key="step", label="Lesson", default="1", options=tuple(str(number + 1) for number in range(len(LESSONS))), help=""
)
TO_THE_TOP = "document.querySelector('[data-testid=stMain]')?.scrollTo(0, 0);"
"""JavaScript that scrolls to the top of the page."""
PICTURE = "[data-testid=stVegaLiteChart]"
"""Selector of the picture."""
TARGET = "target"
"""Name of the target among the series of a picture."""
HEIGHTS = {2: 190, 3: 125}
"""Height of a panel by the number of panels, pixels."""
AROUND, ANSWER = 68, 180
"""Heights of a panel's title and of its share of the time axis, and of an answer, pixels."""


def page() -> None:
    """Draw one lesson: words, prediction, control, picture, answer and navigation buttons."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Learn", width="content")
        number = int(STEP.draw())
        st.caption(f"{len(LESSONS)} lessons, {MINUTES} minutes. Every picture is simulated live.")
    lesson = LESSONS[number - 1]
    st.html(f"<script>/* {number} */ {TO_THE_TOP}</script>", unsafe_allow_javascript=True)
    st.header(f"{number}. {lesson.title}")
    st.fragment(draw_lesson)(number, lesson)
    if number == len(LESSONS):
        draw_end()


def draw_lesson(number: int, lesson: Lesson) -> None:
    """Draw words and prediction on the left; once there is one, also control and answer, and the runs on the right."""
    count = 2 if lesson.pass_k is None else 3
    left, right = st.columns([2, 3], gap="medium")
    with right:
        stage = room("stage", count * (HEIGHTS[count] + AROUND))
    with left:
        st.html(f"<p>{linked_words.html(lesson.setting)}</p>")
        guess = st.radio(f"**Predict.** {lesson.question}", lesson.choices, index=None, key=f"predict-{number}")
        before = st.container()
        if guess:
            value = lesson.move.draw()
            verdict = room("answer", ANSWER)
            st.markdown(f"**Try it.** {lesson.next}")
        draw_navigation(number)
        after = st.container()
    with after if guess else before:
        st.html(f"<p>{linked_words.html(lesson.text)}</p>")
    if not guess:
        with stage:
            st.info("Predict first: the runs are drawn with your answer.", icon=":material/arrow_back:")
        return
    with stage:
        with st.spinner("Simulating"):
            runs = lesson.simulate(value)
        draw_runs(lesson, runs)
    with verdict:
        draw_answer(lesson, runs, guess)
    papers = "; ".join(f"[{source.name}]({source.address})" for source in lesson.sources)
    after.caption(f"In the papers: {papers}")
    for near in lesson.beside(value):  # all is drawn: the next move finds its runs
        lesson.simulate(near)


def draw_runs(lesson: Lesson, runs: Mapping[str, Trajectory]) -> None:
    """Draw the picture of the runs, of which linked words light up parts."""
    shown = picture(runs, lesson.pass_k)
    charts.show(shown, key="tour")
    series = list(dict.fromkeys(shown.frame["series"]))
    st.html(f"<style>{linked_words.style('[data-testid=stMain]', PICTURE, series)}</style>")
    st.caption(f"{summary(runs)} Point at or tap a dotted word: its part of the picture lights up.")


def draw_answer(lesson: Lesson, runs: Mapping[str, Trajectory], guess: str) -> None:
    """Draw whether the prediction is right, the numbers that tell, and why."""
    show, icon = (
        (st.success, ":material/check_circle:") if guess == lesson.right(runs) else (st.warning, ":material/cancel:")
    )
    show(answer(lesson, runs, guess), icon=icon)
    st.html(f"<p>{linked_words.html(lesson.why)}</p>")


def draw_navigation(number: int) -> None:
    """Draw the ways to the lessons before and after, and into the playground."""
    with st.container(horizontal=True, vertical_alignment="center"):
        last = number == len(LESSONS)
        went = st.button("Back", on_click=_go, args=(number - 1,), disabled=number == 1, icon=":material/arrow_back:")
        went |= st.button("Next", on_click=_go, args=(number + 1,), disabled=last, icon=":material/arrow_forward:")
        presets.link(presets.PRESETS[LESSONS[number - 1].goes_on], "Open in the playground")
    if went:
        st.rerun()


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


def answer(lesson: Lesson, runs: Mapping[str, Trajectory], guess: str) -> str:
    """Return the verdict of the runs, after a word on the prediction."""
    told = "As predicted." if guess == lesson.right(runs) else "Not as predicted."
    return f"**{told}** {lesson.verdict(runs)}"


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
    found = panels(runs, k)
    return charts.linked(found, "rollout", height=HEIGHTS[len(found)])


def summary(runs: Mapping[str, Trajectory]) -> str:
    """Return a description of the picture."""
    parts = [
        f"{name} from {run.entropy[:, 0].mean():.2f} to {run.entropy[:, -1].mean():.2f} nats"
        for name, run in runs.items()
    ]
    return f"Entropy over the rollouts, mean of {len(SEEDS)} seeds: {'; '.join(parts)}."
