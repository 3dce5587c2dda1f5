"""Control room: the PI loop as a control engineer sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from toybandit import Config, Trajectory
from toybandit.local_plant import LocalPlant

from ...shared import charts, exports, presets
from ...shared.beside import beside
from ...shared.charts import Panel
from ...shared.controls import Sections
from . import loop_pictures, loop_words
from .loop import Bandit, Loop, draw_bandit, draw_loop, errors_of, ideal_gains, overshoot, plant, run
from .loop_words import settles, why_unstable

SECTION = "pi.section"


def page() -> None:
    """Draw the controls and one section at a time, so that only that section is computed."""
    names = tuple(SECTIONS)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Control room", width="content")
        section = Sections(key=SECTION, label="Section", default=names[0], options=names, help="").draw()
        presets.draw_links("control-room")
    st.caption(
        "EntroPIC as a feedback loop: the error e = H − H* of a rollout sets α = Kp·e + Ki·Σe, and α reweights likely "
        "tokens so that the next rollout has a smaller error."
    )
    st.fragment(draw_room)(section)


def draw_room(section: str) -> None:
    """Draw the controls, and beside them a section."""
    panel, stage = beside()
    with panel:
        st.header("Loop")
        loop = draw_loop()
        st.header("Bandit")
        bandit = draw_bandit()
    with stage:
        try:
            SECTIONS[section](loop, bandit)
        except ValueError as error:
            st.error(str(error))


# Linear loop ----------------------------------------------------------------------------------------------------------


def draw_linear(loop: Loop, bandit: Bandit) -> None:
    """Draw step response, stability region and poles."""
    st.write(r"$e_{t+1} = e_t + d - g\,\alpha_t$ with $\alpha_t = K_p\,e_t + K_i\,S_t$ and $S_t = S_{t-1} + e_t$.")
    errors = loop.response().error.numpy()
    draw_numbers(loop, errors)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.header("Response to an initial error")
        picture, words = charts.linked(loop_pictures.step_panels(loop), "step", height=170), loop_words.response(loop)
        charts.show(picture, key="response")
        st.info(words, icon=":material/visibility:")
        exports.draw(picture, "control-room-response", [])
    with right:
        st.header("Stable gains")
        stability, words = loop_pictures.stability(loop), loop_words.stability(loop)
        charts.show(stability, key="stability")
        st.caption("◆ marks these gains. Dark: the slower part of an error takes long to decay.")
        exports.draw(stability, "control-room-stability", [])
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.header("Poles")
        charts.show(loop_pictures.poles(loop), key="poles", width="content")
    with right:
        st.header("In words")
        st.write(words)
        st.write(r"Jury's conditions: $0 < gK_p < 2$, $gK_i > 0$ and $2gK_p + gK_i < 4$.")
        st.write(loop_words.poles(loop))
        st.write(r"The poles are the roots of $z^2 - (2 - gK_p - gK_i)\,z + 1 - gK_p$.")


def draw_numbers(loop: Loop, errors: np.ndarray) -> None:
    """Draw the key figures of the linear loop."""
    stable = why_unstable(loop) is None
    with st.container(horizontal=True):
        st.metric("Linear loop", "stable" if stable else "not stable", border=True)
        st.metric("Settles", settles(errors, loop.band), border=True)
        past = overshoot(errors)
        st.metric("Overshoot", f"{past:.3f} nats" if past < 10 else "grows", border=True)
        st.metric("Steady-state α", f"{loop.d / loop.g:+.2f}", border=True, help="α that cancels the drift: d/g.")


# On a bandit ----------------------------------------------------------------------------------------------------------


def draw_bandit_section(loop: Loop, bandit: Bandit) -> None:
    """Draw the same gains on a bandit, beside linear theory with the plant measured in that bandit."""
    config = bandit.config(loop)
    trajectory = run(config, bandit.seeds)
    found = plant(bandit.env, bandit.lr, bandit.tau, bandit.target)
    linear = loop.in_plant(found)
    draw_plant(loop, bandit, found)
    picture = charts.linked(bandit_panels(trajectory, linear), "rollout", height=170)
    words = loop_words.bandit(trajectory, linear)
    charts.show(picture, key="bandit")
    st.info(words, icon=":material/visibility:")
    exports.draw(picture, "control-room-bandit", [exports.run_command(config, bandit.seeds)])


def draw_plant(loop: Loop, bandit: Bandit, found: LocalPlant) -> None:
    """Draw the plant measured in the bandit, and a button that copies it to the loop."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.metric("g at the target", f"{found.gain:.3f}", border=True, help="Fall of the entropy per unit of α, nats.")
        st.metric("d at the target", f"{found.drift:+.3f}", border=True, help="Change of the entropy at α = 0, nats.")
        if abs(loop.error) > 1e-9:
            start = plant(bandit.env, bandit.lr, bandit.tau, bandit.target + loop.error)
            st.metric("g at the start", f"{start.gain:.3f}", border=True, help="Linear theory uses g at the target.")
    st.button(
        "Use these as g and d of the loop",
        icon=":material/input:",
        key="take",
        on_click=take_plant,
        args=(found,),
        help="The section Linear loop, and gains by poles, then describe this bandit.",
    )


def take_plant(found: LocalPlant) -> None:
    """Set g and d to the measured values, clamped to the range of their sliders. For callbacks."""
    st.session_state["pi.g"] = min(max(round(found.gain / 0.005) * 0.005, 0.005), 0.5)
    st.session_state["pi.d"] = min(max(round(found.drift / 0.005) * 0.005, -0.1), 0.1)


def bandit_panels(trajectory: Trajectory, linear: Loop) -> list[Panel]:
    """Return panels of error and α, of the bandit and of linear theory."""
    theory, errors = linear.response(), errors_of(trajectory)
    alpha = trajectory.metrics["entropic/alpha"]
    return [
        loop_pictures.side_by_side(
            "Error e = H − H* (nats)", {"bandit": errors, "linear": loop_pictures.drawable(theory.error.numpy())}
        ),
        loop_pictures.side_by_side("α", {"bandit": alpha, "linear": theory.alpha.numpy()[: alpha.shape[1]]}),
    ]


# Windup ---------------------------------------------------------------------------------------------------------------


def draw_windup(loop: Loop, bandit: Bandit) -> None:
    """Draw the linear loop and the bandit, with and without anti-windup."""
    st.write(
        "While α is at its bound, the error cannot be corrected any faster, but the sum of errors keeps growing. "
        "Later, errors of the opposite sign must undo it: an overshoot. Anti-windup stops the sum while α is at its "
        "bound."
    )
    configs = {name: bandit.config(loop, anti_windup=on) for name, on in WAYS.items()}
    columns = st.columns(2, gap="medium")
    with columns[0]:
        st.header("Linear loop")
        show_windup({name: linear_windup(loop, on) for name, on in WAYS.items()}, "linear", [])
    with columns[1]:
        st.header(f"Bandit {bandit.env}")
        found = {name: bandit_windup(run(config, bandit.seeds)) for name, config in configs.items()}
        show_windup(found, "bandit", commands_of("windup", configs, bandit.seeds))


WAYS = {"sum stops": True, "sum goes on": False}
Windup = dict[str, np.ndarray]
"""Error, α and sum, (runs, n) each."""


def linear_windup(loop: Loop, anti_windup: bool) -> Windup:
    """Return error, α and sum of the linear loop with or without anti-windup."""
    found = replace(loop, anti_windup=anti_windup).response()
    names = ("Error e (nats)", "α", "Sum of errors (nats)")
    errors = loop_pictures.drawable(found.error.numpy())
    alpha, total = (np.where(np.isnan(errors), np.nan, x.numpy()) for x in (found.alpha, found.total))
    return {name: x[None] for name, x in zip(names, (errors, alpha, total), strict=True)}


def bandit_windup(trajectory: Trajectory) -> Windup:
    """Return error, α and sum of a bandit."""
    metrics = trajectory.metrics
    return {
        "Error e (nats)": errors_of(trajectory),
        "α": metrics["entropic/alpha"],
        "Sum of errors (nats)": metrics["entropic/integral"],
    }


def show_windup(found: dict[str, Windup], name: str, commands: list[str]) -> None:
    """Draw both variants in one picture, and compare their overshoot in words."""
    quantities = next(iter(found.values()))
    panels = [
        loop_pictures.side_by_side(title, {way: arrays[title] for way, arrays in found.items()}) for title in quantities
    ]
    picture = charts.linked(panels, "rollout")
    words = loop_words.windup({way: arrays["Error e (nats)"].mean(0) for way, arrays in found.items()})
    charts.show(picture, key=f"windup-{name}")
    st.write(words)
    exports.draw(picture, f"control-room-windup-{name}", commands)


# Auto-tuning ----------------------------------------------------------------------------------------------------------


def draw_auto(loop: Loop, bandit: Bandit) -> None:
    """Draw a run with self-tuned gains beside a run with the gains of the controls."""
    hand, auto = bandit.config(loop), bandit.config(loop, auto=True, auto_tau=False)
    runs = {"auto": run(auto, bandit.seeds), "these gains": run(hand, bandit.seeds)}
    found = plant(bandit.env, bandit.lr, bandit.tau, bandit.target)
    st.write(
        "`entropic(auto=True)` starts from g = .1, estimates g from the effect of α on the entropy, and places the "
        "poles at .8 and .9 again after every rollout. The other run uses Kp and Ki of the controls; τ is the same."
    )
    picture = charts.linked(auto_panels(runs, loop, found), "rollout", height=115)
    words = loop_words.auto(runs, loop, found)
    charts.show(picture, key="auto")
    st.info(words, icon=":material/visibility:")
    exports.draw(picture, "control-room-auto", commands_of("tuning", {"auto": auto, "by hand": hand}, bandit.seeds))


def auto_panels(runs: dict[str, Trajectory], loop: Loop, found: LocalPlant) -> list[Panel]:
    """Return panels of both errors, and of g, Kp and Ki of the self-tuned run beside those of the measured plant."""
    metrics, rollouts = runs["auto"].metrics, runs["auto"].reward.shape[1]
    panels = [loop_pictures.side_by_side("Error e = H − H* (nats)", {k: errors_of(v) for k, v in runs.items()})]
    wanted = ideal_gains(found)
    by_name = {
        "Plant gain g (nats per unit of α)": ("plant_gain", found.gain, None),
        "Kp (per nat)": ("kp", wanted[0], loop.kp),
        "Ki (per nat and step)": ("ki", wanted[1], loop.ki),
    }
    for title, (name, ideal, hand) in by_name.items():
        level = {"these gains": hand, "measured at the target": ideal}
        constant = {k: np.full(rollouts, v) for k, v in level.items() if v is not None}
        panels.append(loop_pictures.side_by_side(title, {"auto": metrics[f"entropic/{name}"], **constant}))
    return panels


def commands_of(section: str, configs: Mapping[str, Config], seeds: Sequence[int]) -> list[str]:
    """Return the command that repeats each run, with an output folder per run."""
    return [
        f"{exports.run_command(config, seeds)} --out runs/{section}-{name.replace(' ', '-')}"
        for name, config in configs.items()
    ]


SECTIONS: dict[str, Callable[[Loop, Bandit], None]] = {
    "Linear loop": draw_linear,
    "Bandit": draw_bandit_section,
    "Windup": draw_windup,
    "Auto-tuning": draw_auto,
}
