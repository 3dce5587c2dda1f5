"""Sampling temperature: the entropy when it is held, and training at it beside training a flatter policy."""

from dataclasses import replace

import numpy as np

from ..claims.feedback import late
from ..claims.runs import entropies, sized, trajectory
from ..claims.temperature import HELD, SAME, own_entropy
from ..simulator import simulate
from ..trial import Outcome, Parameter, trial
from .rules import ROLLOUTS, SIZE, over_time

HELP = "Sampling temperature: rollouts and updates are of the softmax of z/T."


@trial(
    "temperature-scale",
    Parameter(
        key="temperature",
        label="Temperature",
        symbol="T",
        default=2.0,
        low=0.5,
        high=4.0,
        step=0.1,
        help="Of sampling.",
    ),
    Parameter(key="power", label="Power of T in the rate", default=2, low=0, high=3, step=1, help="η/T to this power."),
    ROLLOUTS,
)
def temperature_scale(temperature: float, power: int, rollouts: int) -> Outcome:
    """Entropy of a run sampled and trained at T, beside one at temperature 1 that starts from z/T."""
    config = sized(SIZE, {"env": "noisy", "rollouts": rollouts})
    seeds = range(SIZE.runs)
    first = simulate(replace(config, rollouts=1, lr=1e-300), seeds).logits
    rate = float(np.asarray(config.environment().lr)) / temperature**power
    heated = simulate(replace(config, temperature=temperature), seeds).entropy
    cold = simulate(replace(config, lr=rate), seeds, start=first / temperature).entropy
    gap = float(np.abs(heated - cold).max())
    return over_time(heated.mean(0), cold.mean(0), gap < SAME, f"the entropies differ by at most {gap:.2g} nats.")


@trial(
    "temperature-loop",
    Parameter(
        key="at",
        label="Entropy of",
        default="the samples",
        options=("the samples", "the policy, T = 1"),
        help="Samples are drawn from the softmax of z/T; the policy itself is the softmax of z.",
    ),
    Parameter(key="target", label="Target", symbol="H*", default=0.6, low=0.1, high=2.0, step=0.1, help="In nats."),
    replace(ROLLOUTS, default=300, high=400, step=20),
)
def temperature_loop(at: str, target: float, rollouts: int) -> Outcome:
    """Entropy under E3's loop on the sampling temperature; judged is the mean in the last fifth of the runs."""
    size = replace(SIZE, rollouts=rollouts)
    run = trajectory(
        size, env="noisy", controller="temperature_loop", controller_args={"vocabulary": 16}, target=target
    )
    measured = run.entropy[:, :-1] if at == "the samples" else own_entropy(run)
    end, free = float(late(measured).mean()), float(late(entropies(size, env="noisy")).mean())
    because = f"late in the runs it is {end:.3f} nats, {end - target:+.3f} from the target; GRPO's is {free:.3f}."
    return replace(
        over_time(measured.mean(0), target, abs(end - target) < HELD, because), x=np.arange(rollouts, dtype=np.float64)
    )
