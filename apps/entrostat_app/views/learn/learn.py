"""Learn: a tour of six steps, from the collapse of entropy to a theorem that fails."""

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


STEPS = (
    Step(
        title="Collapse",
        text="A policy chooses among 16 arms in each of 16 states and is trained by GRPO on rewards of 0 and 1. Its "
        "**entropy** H = −Σ p log p measures how undecided it is. Likely arms that earn reward become more likely, so "
        "entropy falls, most of it early, and too little is left at the end to find anything better. The same happens "
        "to language models under RLVR.",
        runs={"GRPO": "collapse"},
        question="Does a smaller learning rate prevent the collapse, or only slow it down?",
        goes_on="collapse",
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
    help="The tour goes from the collapse of entropy to a theorem that fails.",
)


def page() -> None:
    """Draw one step of the tour: text, picture, question and navigation buttons."""
    st.title("Learn")
    st.caption("Six steps of two minutes each. Every picture is simulated live; nothing is drawn by hand.")
    with st.sidebar:
        number = int(STEP.draw())
    step = STEPS[number - 1]
    st.header(f"{number}. {step.title}")
    st.markdown(step.text)
    runs = simulate(step)
    charts.show(picture(runs), key="tour")
    st.caption(summary(runs))
    st.markdown(f"**Try it.** {step.question}")
    with st.container(horizontal=True):
        st.button("Back", on_click=_go, args=(number - 1,), disabled=number == 1, icon=":material/arrow_back:")
        last = number == len(STEPS)
        st.button("Next", on_click=_go, args=(number + 1,), disabled=last, icon=":material/arrow_forward:")
        presets.link(presets.PRESETS[step.goes_on], "Open in the playground")


def _go(number: int) -> None:
    st.session_state["step"] = str(number)


def simulate(step: Step) -> dict[str, Trajectory]:
    """Return the runs of a step by name."""
    found = {}
    for name, preset in step.runs.items():
        values = SIDES[preset] if preset in SIDES else presets.PRESETS[preset].query
        found[name] = simulations.run(bandit.config_at(values), SEEDS)
    return found


def picture(runs: Mapping[str, Trajectory]) -> Picture:
    """Return the picture of entropy, with the target if there is one, and reward; means and ranges over seeds."""
    entropy = {name: run.entropy for name, run in runs.items()}
    targets = [run.target for run in runs.values() if run.target is not None]
    if targets:
        entropy["target"] = np.column_stack([targets[0][:1], targets[0][:1, -1:]])
    panels = [
        Panel(title="Entropy H (nats)", frame=charts.bands(entropy)),
        Panel(title="Expected reward", frame=charts.bands({name: run.reward for name, run in runs.items()})),
    ]
    return charts.linked(panels, "rollout", height=190)


def summary(runs: Mapping[str, Trajectory]) -> str:
    """Return a description of the picture."""
    parts = [
        f"{name} from {run.entropy[:, 0].mean():.2f} to {run.entropy[:, -1].mean():.2f} nats"
        for name, run in runs.items()
    ]
    return f"Entropy over the rollouts, mean of {len(SEEDS)} seeds: {'; '.join(parts)}."
