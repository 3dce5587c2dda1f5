"""The balance of successes and failures, for which BAPO moves its clip bounds."""

from dataclasses import replace

import numpy as np
import torch

from ..claims.balance import random_tokens, share_at
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, nearest_rising, trial
from .rules import ENV, PASSES, ROLLOUTS, SIZE, ends_above

UPPER, LOWER = "upper", "lower"


@trial(
    "share",
    Parameter(
        key="bound",
        label="Rising bound",
        default=UPPER,
        options=(UPPER, LOWER),
        help="upper: bound of the ratio for A > 0, from 1.2 to 3. lower: bound for A < 0, from .6 to .9.",
    ),
    Parameter(
        key="spread",
        label="Spread of the log-ratios",
        symbol="σ",
        default=0.5,
        low=0.05,
        high=2.0,
        step=0.05,
        help="Distance of the policy from the sampling policy.",
    ),
)
def share(bound: str, spread: float) -> Outcome:
    """The share of the loss from tokens with A > 0 in one random mini-batch, against one of the two bounds."""
    tokens = random_tokens(1, spread, "trial balance")
    x = np.linspace(1.2, 3.0, 19) if bound == UPPER else np.linspace(0.6, 0.9, 19)
    at = [(0.6, float(value)) if bound == UPPER else (float(value), 3.0) for value in x]
    measured = torch.cat([share_at(tokens, low, high) for low, high in at]).numpy()
    change = float(measured[-1] - measured[0])
    return Outcome(
        x=x,
        x_title=f"{bound} bound of the ratio",
        predicted=nearest_rising(measured),
        measured=measured,
        y_title="share ρ of tokens with A > 0",
        holds=bool(np.diff(measured).min() >= 0) and change > 0,
        because=f"the share goes from {measured[0]:.3f} to {measured[-1]:.3f}, and should rise.",
    )


@trial(
    "bapo",
    Parameter(
        key="share",
        label="Requested share",
        symbol="ρ",
        default=0.6,
        low=0.0,
        high=1.0,
        step=0.05,
        help="Share of the loss from A > 0. The published value is 0.4; the actual share is about 0.5, since the "
        "advantages of a group sum to 0.",
    ),
    replace(PASSES, default=8),
    replace(ROLLOUTS, default=20),
    ENV,
)
def bapo(share: float, passes: int, rollouts: int, env: str) -> Outcome:
    """The mean entropy of the same runs under BAPO and under a fixed clip at .8 and 1.2."""
    shared = {"env": env, "passes": passes, "rollouts": rollouts}
    moved = entropies(SIZE, controller="bapo", controller_args={"share": share}, **shared).mean(0)
    fixed = entropies(SIZE, controller="grpo", **shared).mean(0)
    return ends_above(moved, fixed, "the fixed clip")
