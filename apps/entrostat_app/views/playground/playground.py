"""Playground: GRPO beside a thermostat in one picture, and any bandit under any controller, live."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from toybandit import Trajectory
from toybandit.picture import TITLE
from toybandit.trajectory import last_third

from ...menu import streamlit_page
from ...shared import bandit, charts, exports, presets, simulations
from ...shared.beside import beside
from ...shared.charts import Panel, Picture
from ...shared.controls import Control
from ...shared.palette import COLOURS
from . import side_by_side

VIEW, VIEWS = "view", ("The picture", "Playground")
"""Query parameter of the view, and its values."""
STYLE = f"""
[data-testid=stMainBlockContainer] {{ padding-top: 4rem }}
.st-key-{VIEW} [aria-checked=true] p {{ color: CanvasText }}
"""
"""Style sheet: buttons are below the menu, and the chosen view is readable in dark mode."""
FRAME_SECONDS = 0.4
"""Time between two policies while playing, seconds."""
ARMS = 285
"""Height of the policy's bars, pixels: with what is above them they fit a screen of 1280 × 800."""
PASS_KS = (1, 8, 64)
"""Values of k for pass@k."""
HELD_OUT_K = 8
"""k of pass@k on held-out prompts."""


def page() -> None:
    """Draw the picture, or the playground: a link with values of its controls opens it."""
    others = (key for key in st.query_params if not key.startswith((VIEW, side_by_side.KEY, "embed")))
    if VIEW not in st.session_state and VIEW not in st.query_params and any(others):
        st.session_state[VIEW] = st.query_params[VIEW] = VIEWS[1]
    with st.container(horizontal=True, vertical_alignment="center"):
        heading = st.container(width="content")
        shown = st.segmented_control(
            "View",
            VIEWS,
            default=VIEWS[0],
            required=True,
            key=VIEW,
            bind="query-params",
            label_visibility="collapsed",
        )
        words = "New here? Start with the course."
        st.page_link(streamlit_page("learn"), label=words, icon=":material/school:", width="stretch")
        if shown == VIEWS[1]:
            presets.draw_links("playground")
    st.html(f"<style>{STYLE}</style>")
    heading.title(VIEWS[1] if shown == VIEWS[1] else TITLE)
    st.fragment(draw_playground if shown == VIEWS[1] else side_by_side.draw)()


def draw_playground() -> None:
    """Draw controls, and beside them pictures over one time axis and the policy at one moment."""
    panel, stage = beside()
    with panel:
        controller = bandit.draw_controller()
        environment = bandit.draw_environment()
        seed = bandit.SEED.draw()
    with stage:
        draw_run(environment, controller, seed)


def draw_run(environment: Mapping[str, Any], controller: Mapping[str, Any], seed: int) -> None:
    """Draw a run with these values of controls."""
    try:
        config = bandit.config(environment, controller)
        found = simulations.run_or_ask([config], (seed,), [config.controller])
    except ValueError as error:
        st.error(str(error))
        return
    if found is None:
        return
    trajectory = found[0]
    picture = charts.linked(panels(trajectory), "rollout")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        charts.show(picture, key="linked")
        st.caption(summary(trajectory))
    with right:
        preset = presets.current("playground")
        if words := preset.notice if preset else notice(trajectory):
            st.info(words, icon=":material/visibility:")
        if is_changing(trajectory):
            st.caption("Training prompts change with each rollout, so there is no policy of one prompt to follow.")
        else:
            draw_policy(trajectory)
    exports.draw(picture, "playground", [exports.run_command(config, (seed,))])


def panels(trajectory: Trajectory) -> list[Panel]:
    """Return panels of entropy and target, reward, entropy change, pass@k and controller state.

    pass@k is left out for responses of several tokens and for prompts that change, the entropy change where states
    share features; results on held-out prompts are shown instead.
    """
    entropy, reward, target = trajectory.entropy[0], trajectory.reward[0], trajectory.target
    held = {} if target is None else {"target": np.append(target[0], target[0, -1])}
    found = [Panel(title="Entropy H (nats)", frame=charts.table({"entropy": entropy, **held}))]
    unseen = trajectory.held_out
    if unseen is None:
        found.append(Panel(title="Expected reward", frame=charts.table({"reward": reward})))
    else:
        one, several = (unseen.pass_at(k)[0] for k in (1, HELD_OUT_K))
        curves = {"reward in training, mean": [np.nan, *between(trajectory)], "pass@1, held out": one}
        title = "One response: reward since the last evaluation, and pass@1 on held-out prompts"
        found.append(Panel(title=title, frame=charts.table(curves, unseen.rollouts)))
        frame = charts.table({"pass@8": several}, unseen.rollouts)
        found.append(Panel(title=f"pass@{HELD_OUT_K} on held-out prompts", frame=frame))
    if trajectory.predicted is not None:
        changes = {"measured": np.diff(entropy), "predicted": trajectory.predicted[0]}
        found.append(Panel(title="Entropy change ΔH per rollout (nats)", frame=charts.table(changes)))
    if trajectory.config.environment().length == 1 and not is_changing(trajectory):
        passed = {f"pass@{k}": trajectory.pass_at(k)[0] for k in PASS_KS}
        found.append(Panel(title="pass@k: one of k draws is a best arm", frame=charts.table(passed)))
    others = {name: values[0] for name, values in trajectory.metrics.items() if not name.endswith("/target")}
    state = {name: values for name, values in others.items() if np.ptp(values) > 0}
    if state:
        found.append(Panel(title="Controller", frame=charts.table(state)))
    return found


def between(trajectory: Trajectory) -> list[float]:
    """Return the mean reward in training between evaluations on held-out prompts."""
    assert trajectory.held_out is not None
    return [trajectory.reward[0, start:end].mean() for start, end in pairwise(trajectory.held_out.rollouts)]


def is_changing(trajectory: Trajectory) -> bool:
    """Return True if a rollout has other prompts than the one before it."""
    environment = trajectory.config.environment()
    return environment.prompts > environment.states


def summary(trajectory: Trajectory) -> str:
    """Return a description of the pictures."""
    entropy = trajectory.entropy[0]
    reward = trajectory.reward[0] if trajectory.held_out is None else between(trajectory)
    text = (
        f"Entropy goes from {entropy[0]:.2f} to {entropy[-1]:.2f} nats over {len(entropy) - 1} rollouts under "
        f"{trajectory.config.controller}, the expected reward from {reward[0]:.2f} to {reward[-1]:.2f}."
    )
    if trajectory.held_out is None:
        return text
    ends = trajectory.held_out.pass_at(HELD_OUT_K)[0, [0, -1]]
    return (
        f"{text} On {trajectory.held_out.solved.shape[-1]} prompts that are never trained, pass@{HELD_OUT_K} goes from "
        f"{ends[0]:.2f} to {ends[1]:.2f}."
    )


def notice(trajectory: Trajectory) -> str:
    """Return a note on a run, made from its numbers; empty if nothing stands out."""
    entropy, target = trajectory.entropy[0], trajectory.target
    fall = entropy[0] - entropy[-1]
    early = entropy[0] - entropy[len(entropy) // 4]
    parts = []
    if fall > 0.1:
        parts.append(f"{100 * early / fall:.0f}% of the entropy's fall happens in the first quarter of the run.")
    if target is not None:
        late, held = last_third(entropy).mean(), last_third(target[0]).mean()
        parts.append(f"Over the last third, the entropy is {late:.2f}, {late - held:+.2f} from the target.")
    measured = np.diff(entropy)
    spread = np.square(measured - measured.mean()).sum()
    if spread > 0 and trajectory.predicted is not None:
        explained = 1 - np.square(measured - trajectory.predicted[0]).sum() / spread
        parts.append(f"The first-order prediction explains {100 * max(explained, 0):.0f}% of the variance of ΔH.")
    return " ".join(parts)


def draw_policy(trajectory: Trajectory) -> None:
    """Draw the policy in one state, with a slider over the rollouts."""
    playing = st.toggle("Play", key="play", help="Step through the rollouts.")
    st.fragment(scrubber, run_every=FRAME_SECONDS if playing else None)(trajectory, playing)


def scrubber(trajectory: Trajectory, playing: bool) -> None:
    """Draw the arms' probabilities in one state before one rollout; while playing, each call goes one rollout on."""
    assert trajectory.policies is not None
    _, moments, rows, _ = trajectory.policies.shape
    last = moments - 1
    if playing and st.session_state.get("t", 0) < last:
        st.session_state["t"] = st.session_state.get("t", 0) + 1
    if st.session_state.get("t", 0) > last:
        st.session_state["t"] = last
    time, place = st.columns(2) if rows > 1 else (st.container(), None)
    with time:
        moment = Control(
            key="t", label="Moment", symbol="t", unit="rollout", default=0, low=0, high=last, help="Policy to show."
        ).draw()
    state = 0
    if place is not None:
        with place:
            state = Control(
                key="state", label="State", symbol="s", default=0, low=0, high=rows - 1, help="Prompt to show."
            ).draw()
    with st.container(horizontal=True):
        st.button("Step back", on_click=_step, args=(-1, last), icon=":material/skip_previous:", disabled=moment == 0)
        st.button("Step", on_click=_step, args=(1, last), icon=":material/skip_next:", disabled=moment == last)
    p, q = trajectory.policies[0, moment, state], trajectory.success[0, state]
    entropy = float(-(p * np.log(p, out=np.zeros_like(p), where=p > 0)).sum())
    best = int(p.argmax())
    st.caption(
        f"State {state} before rollout {moment}: H = {entropy:.3f} nats, expected reward {p @ q:.3f}. "
        f"The most likely arm is {best}, with probability {p[best]:.2f}."
    )
    charts.show(
        Picture(_arms_spec(), arms(p, q), "Bars: probability of each arm, with high rewards marked."), key="arms"
    )


def _step(by: int, last: int) -> None:
    st.session_state["t"] = min(max(st.session_state.get("t", 0) + by, 0), last)


def arms(p: np.ndarray, q: np.ndarray) -> pd.DataFrame:
    """Return a row per arm from the probabilities p (K,) and expected rewards q (K,)."""
    pays = np.where(q > q.min(), "higher reward", "lower reward") if np.ptp(q) > 0 else np.full(len(q), "equal reward")
    return pd.DataFrame({"arm": np.arange(len(p)), "probability": p, "reward": q, "pays": pays})


@lru_cache
def _arms_spec() -> dict[str, Any]:
    domain, colours = ["higher reward", "lower reward", "equal reward"], [COLOURS[0], COLOURS[4], COLOURS[7]]
    colour = alt.Color(
        "pays:N",
        scale=alt.Scale(domain=domain, range=colours),
        legend=alt.Legend(title=None, orient="top", columnPadding=4),
    )
    base = alt.Chart().encode(
        x=alt.X("arm:O", axis=alt.Axis(labelAngle=0, ticks=False, labelOverlap=True)),
        y=alt.Y("probability:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
        color=colour,
        tooltip=["arm:O", alt.Tooltip("probability:Q", format=".4f"), "reward:Q"],
    )
    best = base.transform_filter(alt.datum.pays == "higher reward").mark_text(text="▲", dy=-8, fontSize=10)
    return charts.specification((base.mark_bar() + best).properties(height=ARMS))
