"""Clip-Higher from a start that is sure, and the number of updates on a rollout under it."""

from dataclasses import replace

import numpy as np

from ..claims.checks import rising
from ..claims.registry import Effort
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, nearest_rising, trial
from .rules import ENV, LR, PASSES, ROLLOUTS, over_time

SIZE = Effort(instances=8, runs=16, states=24, rollouts=80)
"""Size of the bandits: a rise is small, and needs many states."""
STD = Parameter(
    key="std",
    label="Spread of the initial logits",
    symbol="σ",
    default=9.0,
    low=0.5,
    high=12.0,
    step=0.5,
    help="2: the policy starts at 1.6 nats. 9: at .37 nats, like the paper's model.",
)
EPS_HIGH = Parameter(
    key="eps_high",
    label="Upper bound",
    symbol="ε_high",
    default=0.8,
    low=0.1,
    high=2.0,
    step=0.05,
    help="Distance of the upper bound from the ratio 1; the lower one is .2.",
)


@trial(
    "clip-higher",
    replace(EPS_HIGH, default=0.3),
    STD,
    replace(PASSES, default=8),
    replace(ROLLOUTS, default=80),
    ENV,
)
def clip_higher(eps_high: float, std: float, passes: int, rollouts: int, env: str) -> Outcome:
    """Mean entropy under Clip-Higher; the prediction is a lower limit, the initial entropy."""
    args, settings = {"eps_high": eps_high}, {"logit_std": std, "passes": passes, "rollouts": rollouts}
    entropy = entropies(SIZE, env=env, controller="clip_higher", controller_args=args, **settings).mean(0)
    return over_time(
        entropy,
        np.maximum(entropy, entropy[0]),
        bool(entropy[-1] > entropy[0]),
        f"the entropy starts at {entropy[0]:.3f} and ends at {entropy[-1]:.3f}; the claim is that it rises.",
    )


@trial(
    "reuse-rising",
    Parameter(
        key="least",
        label="Smallest number of updates",
        symbol="M",
        default=4,
        low=1,
        high=6,
        step=1,
        help="Compared with eight updates on a rollout.",
    ),
    EPS_HIGH,
    STD,
    LR,
    replace(ROLLOUTS, default=80),
)
def reuse_rising(least: int, eps_high: float, std: float, lr: float, rollouts: int) -> Outcome:
    """Change of the entropy over runs under Clip-Higher, by the number of updates on a rollout."""
    updates = (least, 8)
    settings = {"controller_args": {"eps_high": eps_high}, "logit_std": std, "lr": lr, "rollouts": rollouts}
    found = [entropies(SIZE, env="noisy", controller="clip_higher", passes=m, **settings) for m in updates]
    change = np.stack([entropy[:, -1] - entropy[:, 0] for entropy in found])
    mean = change.mean(-1)
    holds = bool(mean[0] > 0) and rising(*change).holds
    return Outcome(
        x=np.array(updates, dtype=np.float64),
        x_title="updates per rollout M",
        predicted=np.maximum(nearest_rising(mean), 0),
        measured=mean,
        y_title="change of the entropy over the run ΔH (nats)",
        holds=holds,
        because=f"with {least} updates the entropy changes by {mean[0]:+.3f}, with 8 by {mean[1]:+.3f}; the claim is a "
        "rise, and a larger one with more updates.",
    )
