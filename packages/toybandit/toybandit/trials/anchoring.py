"""Effect of an anchored bonus, which should keep the entropy of the most uncertain tokens at its initial value."""

from dataclasses import replace

import numpy as np

from ..claims.anchoring import ALL, NEAR, STRONG, anchored, drift
from ..claims.feedback import late
from ..trial import Outcome, Parameter, trial
from .rules import ENV, ROLLOUTS, SIZE


@trial(
    "anchor",
    Parameter(
        key="log_beta",
        label="Coefficient of the penalty, as a power of ten",
        symbol="log₁₀ β",
        default=round(float(np.log10(STRONG)), 1),
        low=-3.0,
        high=1.0,
        step=0.1,
        help="The published value is .005, which is −2.3 here.",
    ),
    Parameter(
        key="top_p",
        label="Probability of the actions that count",
        symbol="top_p",
        default=ALL,
        low=0.5,
        high=1.0,
        step=0.05,
        help="1: all actions count. The published value is .8.",
    ),
    replace(ROLLOUTS, default=40, high=300),
    replace(
        ENV,
        options=("noisy", "on"),
        help="noisy: right arms pay with probability .6, others .3; samples are reused. on: samples are used once.",
    ),
)
def anchor(log_beta: float, top_p: float, rollouts: int, env: str) -> Outcome:
    """The mean entropy of the most uncertain fifth of the tokens under SIREN, minus its value in the first rollout."""
    run = anchored(replace(SIZE, rollouts=rollouts), env, 10**log_beta, top_p)
    moved = drift(run)
    end = float(late(moved).mean())
    return Outcome(
        x=np.arange(rollouts, dtype=np.float64),
        x_title="rollout",
        predicted=np.zeros(rollouts),
        measured=moved.mean(0),
        y_title="distance from the anchor (nats)",
        holds=abs(end) < NEAR,
        because=f"late in the runs the mean is {end:+.3f} nats from its anchor; the claim is less than {NEAR}.",
    )
