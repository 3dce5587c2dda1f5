"""Sampling temperature: what training at it amounts to (ours), and what a loop on it holds: E3, thermostat."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from entrostat.about.colours import colour_of
from entrostat.controllers.temperature_loop import TemperatureLoop

from ..policy import Policy
from ..problem import draw_problem
from ..simulator import simulate
from ..trajectory import Array, Trajectory
from .checks import Values, between, every, numbers_of, settle, told
from .feedback import GOAL, late
from .live_case import Live, equals
from .memory import remember
from .mutations import Mutation, Swap, always, mirrored
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, holds_if, judge
from .runs import sized, trajectory

TEMPERATURES = 0.5, 1.3, 3.0
SAME = 1e-9
"""Largest difference of entropies that counts as rounding, nats."""
SHORT = 60
"""Rollouts of the runs that are compared to rounding."""
HELD = 0.05
"""Largest error that counts as holding the target, nats."""
ENVS = "noisy", "on"
E3, BONUS, NONE = "E3's loop", "bonus", "GRPO"
RULES: dict[str, dict[str, Any]] = {
    E3: {"controller": "temperature_loop", "controller_args": {"vocabulary": 16}, "target": GOAL},
    "solved temperature": {"controller": "thermostat", "controller_args": {"mode": "temperature"}, "target": GOAL},
    BONUS: {"controller": "thermostat", "target": GOAL},
    "anchor": {"controller": "thermostat", "controller_args": {"mode": "anchor"}, "target": GOAL},
    NONE: {"controller": "grpo"},
}
SAMPLES = "the entropy is that of the samples"


def apart(effort: Effort, env: str, temperature: float, power: int = 2) -> float:
    """Return the largest difference (nats) between training at T and training softmax(z/T) at 1 with rate η/T^power."""
    config = replace(sized(effort, {"env": env}), rollouts=SHORT)
    environment, seeds = config.environment(), range(min(effort.runs, 4))
    logits, _ = draw_problem(environment, torch.tensor(seeds), torch.float64)
    rate = float(np.asarray(environment.lr)) / temperature**power
    heated = simulate(replace(config, temperature=temperature), seeds)
    cold = simulate(replace(config, lr=rate), seeds, start=(logits / temperature).numpy())
    return float(np.abs(heated.entropy - cold.entropy).max())


@claim(
    "temperature-scale",
    paper="Ours",
    source="the chain rule; the policy that rollouts and updates see is the softmax of z/T",
    words="to sample and train at temperature T is to train the softmax of z/T at temperature 1, at the rate η/T²",
    statement=r"y = z/T:\quad \Delta z = \eta\,\nabla_z \ \Longrightarrow\ \Delta y = \tfrac{\eta}{T^2}\,\nabla_y",
    assumption=f"noisy, on and det; T of .5, 1.3 and 3; {SHORT} rollouts",
    threshold=f"the same entropy at every rollout within {SAME:g} nats",
    null="the rate η/T",
    expected=HOLDS,
    mutations=(Mutation("the gradient lacked its factor 1/T", Swap(Policy, "in_logits", always(lambda self, g: g))),),
    live=Live("temperature-scale", turned={"power": 1}, conditions=(equals("power", 2),)),
)
def temperature_scale(effort: Effort) -> Finding:
    """So a temperature is no force on the policy: a high one starts flatter and learns slower, and what it learns is as
    peaked in z/T as without it. The policy itself, the softmax of z, is then T times as steep."""
    found = {
        power: max(apart(effort, env, t, power) for env in (*ENVS, "det") for t in TEMPERATURES) for power in (2, 1)
    }
    return Finding(
        f"largest difference {found[2]:.0e} nats",
        {"largest difference": found[2]},
        judge(found[2] < SAME),
        null=f"{found[1]:.2g} nats",
    )


@remember
def under(effort: Effort, env: str, rule: str) -> Trajectory:
    return trajectory(effort, env=env, **RULES[rule])


def own_entropy(run: Trajectory) -> Array:
    """Return the entropy of the policy itself, at temperature 1, before each rollout: (runs, rollouts), nats."""
    return run.metrics.get("entropy/at_1", run.entropy[:, :-1])


@claim(
    "temperature-loop",
    paper="E3",
    source="section on the temperature scheduler (arXiv 2505.18573)",
    words="adjusting the temperature keeps the entropy of the policy at a stable level",
    statement=r"T \leftarrow T\Big(1 + T\,\frac{\ln(H^*/H)}{\ln V + \ln\ln V}\Big)\ \Rightarrow\ H \to H^*",
    assumption="noisy and on, target .6, V = 16",
    setting="1.5B models on mathematics",
    threshold=f"the late entropy of the policy itself, at temperature 1, within {HELD:g} nats of the target in both",
    null="GRPO, without a loop",
    expected=holds_if(SAMPLES),
    mutations=(
        Mutation("the error had the other sign", Swap(TemperatureLoop, "observe", mirrored)),
        Mutation("T stayed at 1", Swap(TemperatureLoop, "observe", always(lambda self, stats: None))),
    ),
    live=Live(
        "temperature-loop", turned={"at": "the policy, T = 1"}, conditions=(equals("at", "the samples", stated=False),)
    ),
)
def temperature_loop(effort: Effort) -> Finding:
    """The samples stay as varied as asked, and the policy that makes them loses its entropy faster than without a loop:
    what holds the samples' entropy up is only the division by T. A bonus or an anchor at the same target leaves the
    policy itself there. At the end of a run, T is part of what was trained."""
    effort = effort.times(2)
    runs = {env: {rule: under(effort, env, rule) for rule in RULES} for env in ENVS}
    own = {env: {rule: late(own_entropy(run)) for rule, run in found.items()} for env, found in runs.items()}
    samples: dict[str, Values] = {env: late(found[E3].entropy[:, :-1]) for env, found in runs.items()}
    near = (between(values, GOAL - HELD, GOAL + HELD) for values in samples.values())
    itself = (between(own[env][E3], GOAL - HELD, GOAL + HELD) for env in ENVS)
    heat = {env: late(runs[env][E3].metrics["temperature"]) for env in ENVS}
    at_one = "; ".join(
        f"{rule} " + " and ".join(told(own[env][rule]) for env in ENVS) for rule in RULES if rule != NONE
    )
    return Finding(
        f"samples {told(samples['noisy'])} and {told(samples['on'])} nats at T = {told(heat['noisy'], 2)} and "
        f"{told(heat['on'], 2)}; the policy itself: {at_one}",
        numbers_of({f"{rule}, {env}, at T = 1": own[env][rule] for env in ENVS for rule in RULES}),
        *settle(every(itself), SAMPLES, every(near)),
        null="the policy itself: " + " and ".join(told(own[env][NONE]) for env in ENVS),
    )


@picture(
    "temperature-loop", caption="Entropy of the samples (solid) and of the policy itself at temperature 1 (dashed)."
)
def draw_loops(figure: Figure, effort: Effort) -> None:
    for axes, env in zip(figure.subplots(1, 2, sharey=True), ENVS, strict=True):
        for rule in (E3, BONUS, NONE):
            run, colour = under(effort.times(2), env, rule), colour_of(RULES[rule]["controller"])
            axes.plot(run.entropy.mean(0), color=colour, label=rule)
            axes.plot(own_entropy(run).mean(0), color=colour, linestyle="--")
        axes.set(title=env, xlabel="rollout", ylim=(0, None))
    figure.axes[0].set_ylabel("mean entropy (nats)")
    figure.axes[0].legend()
