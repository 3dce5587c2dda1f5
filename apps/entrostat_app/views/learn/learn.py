"""Learn: a tour of six steps, from the trap of a collapsed policy to a theorem that fails."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from toybandit import Trajectory

from ...shared import bandit, charts, presets, simulations
from ...shared.charts import Panel, Picture
from ...shared.controls import Control

SEEDS = (0, 1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Step:
    """Step of the tour: its text, the runs that show it, and the preset to continue with."""

    title: str
    text: str
    runs: Mapping[str, str]
    """Preset of each run, by its name in the picture."""
    question: str
    """Suggestion of what to try next."""
    goes_on: str
    """Preset to open."""
    predict: tuple[str, ...] = ()
    """Possible answers, of which one is to be chosen before the picture is read."""
    start: Control | None = None
    """Slider of the first target of the run HELD, nats; see `falling`."""
    pass_k: int | None = None
    """k of the panel of pass@k; None for no panel."""


HELD = "falling target"
"""Name of the run whose target a slider moves."""
LAST = 0.05
"""Target at the end of HELD, nats."""


STEPS = (
    Step(
        title="The trap",
        text="A policy chooses among 16 arms in each of 16 states and is trained by GRPO on rewards of 0 and 1. Its "
        "likeliest arm pays half of the time. One arm always pays, but the first policy draws it once in 400 times; "
        "the others pay .3 of the time. The **entropy** H = −Σ p log p measures how undecided the policy is. Likely "
        "arms that earn reward become more likely, so entropy falls, most of it early. **pass@64** is the chance that "
        "one of 64 draws is the best arm. A **thermostat** adds a bonus that keeps the entropy at a target; here the "
        "target falls in the course of the run, so that both policies end decided.",
        runs={"GRPO": "trap", HELD: HELD},
        question="At which first target is the best arm found in half of the states?",
        goes_on="trap",
        predict=("GRPO, which follows the reward alone", "the falling target", "both the same"),
        start=Control(
            key="start",
            label="First target",
            symbol="H*",
            unit="nats",
            default=1.2,
            low=0.2,
            high=2.4,
            step=0.2,
            help=f"The target falls in a straight line from this to {LAST:g} nats at the end of the run.",
        ),
        pass_k=64,
    ),
    Step(
        title="Why clip-higher helps",
        text="Samples are used for several updates, and the ratio of new to old probability is clipped. The "
        "**upper** bound of 1.2 stops unlikely arms first: from .01 they can grow only to .012. Yet it is their growth "
        "that raises entropy. A higher bound, 1.28, leaves them some room.",
        runs={"clip .2": "clip-default", "clip-higher .28": "clip-higher"},
        question="Set the updates per rollout to 1. Is there still a difference?",
        goes_on="clip-higher",
    ),
    Step(
        title="Positives only",
        text="Each response is better or worse than its group's mean. Training only on the better ones is like "
        "fine-tuning on one's own successes: it sharpens the policy. Training only on the worse ones takes probability "
        "away from them and spreads it over all other arms. Most controllers balance these two effects.",
        runs={"both": "collapse", "positives": "positives-only", "negatives": "negatives-only"},
        question="Which of the three earns the most reward at the end, and which at the same entropy?",
        goes_on="positives-only",
    ),
    Step(
        title="P leaves an error, PI does not",
        text="EntroPIC weights positives and negatives by the error, the entropy's distance from a target. **P** "
        "control uses the current error and settles where its effect cancels the drift of training, which is off the "
        "target. **PI** control adds the sum of all errors, which grows until the error is gone.",
        runs={"P control": "p-control", "PI control": "pi-control"},
        question="Double the learning rate. Which of the two errors changes?",
        goes_on="pi-control",
    ),
    Step(
        title="Windup",
        text="A controller's output has a bound. While it is at its bound, a larger sum of errors has no effect, and "
        "if the sum keeps growing, it must be undone later: the entropy overshoots the target. **Anti-windup** stops "
        "the sum while the output is at its bound.",
        runs={"sum stops": "no-windup", "sum goes on": "windup"},
        question="How small must the integral gain be for both runs to look alike?",
        goes_on="windup",
    ),
    Step(
        title="When the theorem fails",
        text="Theorem 4.3 of EntroPIC says that PI control brings the error to 0. Strictly on-policy, with rewards of "
        "0 and 1 and weights on all tokens (τ = 0), the weights scale the expected step but cannot change its "
        "direction. So entropy falls through the target, and α runs to its bound without effect. The theorem needs "
        "**control authority**.",
        runs={"PI, on-policy, τ = 0": "no-authority", "PI, re-used samples": "pi-control"},
        question="Raise τ to .5, so that only likely tokens are weighted. What changes?",
        goes_on="no-authority",
    ),
)
SIDES: dict[str, dict] = {
    "clip-default": {key: value for key, value in presets.PRESETS["clip-higher"].query.items() if key != "controller"},
    "no-windup": {**presets.PRESETS["windup"].query, "entropic.anti_windup": True},
}
"""Settings of the runs in a comparison that are not presets."""
STEP = Control(
    key="step",
    label="Step of the tour",
    default="1",
    options=tuple(str(number + 1) for number in range(len(STEPS))),
    help="The tour goes from the trap of a collapsed policy to a theorem that fails.",
)


TO_THE_TOP = "document.querySelector('[data-testid=stMain]')?.scrollTo(0, 0);"
"""JavaScript that scrolls to the top of the page."""


def page() -> None:
    """Draw one step of the tour: text, picture, question and navigation buttons."""
    st.title("Learn")
    st.caption("Six steps of two minutes each. Every picture is simulated live; nothing is drawn by hand.")
    with st.sidebar:
        number = int(STEP.draw())
    step = STEPS[number - 1]
    st.html(f"<script>/* {number} */ {TO_THE_TOP}</script>", unsafe_allow_javascript=True)
    st.header(f"{number}. {step.title}")
    st.markdown(step.text)
    if step.predict:
        st.radio("**Predict.** Which ends with more reward?", step.predict, index=None, key=f"predict-{number}")
    runs = simulate(step, step.start.draw() if step.start else None)
    charts.show(picture(runs, step.pass_k), key="tour")
    st.caption(summary(runs))
    if step.predict:
        with st.expander("Answer"):
            st.markdown(answer(runs))
    st.markdown(f"**Try it.** {step.question}")
    with st.container(horizontal=True):
        st.button("Back", on_click=_go, args=(number - 1,), disabled=number == 1, icon=":material/arrow_back:")
        last = number == len(STEPS)
        st.button("Next", on_click=_go, args=(number + 1,), disabled=last, icon=":material/arrow_forward:")
        presets.link(presets.PRESETS[step.goes_on], "Open in the playground")


def _go(number: int) -> None:
    st.session_state["step"] = str(number)


def falling(start: float) -> dict:
    """Return the settings of a thermostat in the trap whose target falls from `start` (nats) to LAST over the run."""
    trap = presets.PRESETS["trap"].query
    return {**trap, "controller": ("thermostat",), "schedule": f"linear({start:g}, {LAST:g}, {trap['rollouts']})"}


def simulate(step: Step, start: float | None = None) -> dict[str, Trajectory]:
    """Return the runs of a step by name; start: first target of HELD, nats, if not the slider's default."""
    sides = dict(SIDES)
    if step.start is not None:
        sides[HELD] = falling(step.start.default if start is None else start)
    found = {}
    for name, preset in step.runs.items():
        values = sides[preset] if preset in sides else presets.PRESETS[preset].query
        found[name] = simulations.run(bandit.config_at(values), SEEDS)
    return found


def picture(runs: Mapping[str, Trajectory], k: int | None = None) -> Picture:
    """Return the picture of entropy, with the target if there is one, reward and pass@k; means and ranges over seeds.

    k: None draws no pass@k.
    """
    entropy = {name: run.entropy for name, run in runs.items()}
    targets = [run.target for run in runs.values() if run.target is not None]
    if targets:
        entropy["target"] = np.column_stack([targets[0][:1], targets[0][:1, -1:]])
    panels = [
        Panel(title="Entropy H (nats)", frame=charts.bands(entropy)),
        Panel(title="Expected reward", frame=charts.bands({name: run.reward for name, run in runs.items()})),
    ]
    if k is not None:
        frame = charts.bands({name: run.pass_at(k) for name, run in runs.items()})
        panels.append(Panel(title=f"pass@{k}", frame=frame))
    return charts.linked(panels, "rollout", height=190 if k is None else 150)


def answer(runs: Mapping[str, Trajectory]) -> str:
    """Return the answer to the prediction of the trap, with the numbers of its runs."""
    plain, held = (runs[name] for name in ("GRPO", HELD))
    found = {name: run.pass_at(1)[:, -1].mean() for name, run in runs.items()}
    return (
        f"GRPO ends at a reward of {plain.reward[:, -1].mean():.2f}. It settles for the arm that pays half of the "
        f"time: it draws the best arm with a probability of {found['GRPO']:.2f}, and too little entropy is left to "
        f"find it. With the falling target the reward ends at {held.reward[:, -1].mean():.2f}, and the best arm's "
        f"probability at {found[HELD]:.2f}. The higher the target starts, the longer the best arm is still drawn, and "
        "the more states find it."
    )


def summary(runs: Mapping[str, Trajectory]) -> str:
    """Return a description of the picture."""
    parts = [
        f"{name} from {run.entropy[:, 0].mean():.2f} to {run.entropy[:, -1].mean():.2f} nats"
        for name, run in runs.items()
    ]
    return f"Entropy over the rollouts, mean of {len(SEEDS)} seeds: {'; '.join(parts)}."
