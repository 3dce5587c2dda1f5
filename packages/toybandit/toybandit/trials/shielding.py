"""Effect of a penalty on an unlikely token that fails, and on the entropy of a run."""

from dataclasses import replace

import numpy as np
import torch

from ..claims.ensembles import random_logits
from ..claims.runs import entropies
from ..claims.shielding import FALLEN, MARGIN, least_likely, pushed_down
from ..trial import Outcome, Parameter, trial
from .rules import ENV, PASSES, ROLLOUTS, SIZE, ends_above

FEW = replace(SIZE, runs=4)
"""Size with fewer runs, since the runs are long."""


@trial(
    "shield",
    Parameter(
        key="ratio",
        label="Ratio of the token",
        symbol="r",
        default=FALLEN,
        low=0.1,
        high=1.0,
        step=0.05,
        help="π/π_old of the token for the verdict.",
    ),
    Parameter(
        key="beta",
        label="Coefficient of the penalty",
        symbol="β",
        default=1.0,
        low=0.0,
        high=10.0,
        step=0.5,
        help="The published value is 1.",
    ),
    Parameter(
        key="min_p",
        label="Noise threshold",
        symbol="κ",
        default=0.02,
        low=0.01,
        high=0.5,
        step=0.01,
        help="Probability, relative to the likeliest action's, below which the proxy drops an action.",
    ),
)
def shield(ratio: float, beta: float, min_p: float) -> Outcome:
    """Push of a failure, A = −1, on the least likely action in the proxy, at every ratio; 64 actions."""
    old, proxy = least_likely(random_logits(1, 64, 2.0, "trial lp-reg"), min_p)
    x = np.linspace(0.1, 1.0, 91)
    _, net = pushed_down(old.expand(len(x)), proxy.expand(len(x)), torch.from_numpy(x), beta=beta)
    at = float(pushed_down(old, proxy, ratio, beta=beta)[1])
    return Outcome(
        x=x,
        x_title="ratio r",
        predicted=np.minimum(net.numpy(), 0.0),
        measured=net.numpy(),
        y_title="∂loss/∂log π: positive takes probability away",
        holds=at <= 0,
        because=f"at r = {ratio:g} the derivative is {at:.3f}, and should not be positive.",
    )


@trial(
    "lp-reg",
    Parameter(
        key="share",
        label="Penalised share of the tokens",
        symbol="ρ",
        default=0.1,
        low=0.01,
        high=0.5,
        step=0.01,
        help="Share of the tokens, the least likely ones. The published value is .01.",
    ),
    replace(PASSES, default=8),
    replace(ROLLOUTS, default=40, help="Length of the run. The penalty acts late, when little entropy is left."),
    ENV,
)
def lp_reg(share: float, passes: int, rollouts: int, env: str) -> Outcome:
    """The mean entropy of the same runs under Lp-Reg and under GRPO, at a learning rate of 1."""
    shared = {"env": env, "passes": passes, "rollouts": rollouts, "lr": 1.0}
    moved = entropies(FEW, controller="lp_reg", controller_args={"share": share}, **shared).mean(0)
    fixed = entropies(FEW, controller="grpo", **shared).mean(0)
    return ends_above(moved, fixed, "GRPO", MARGIN)
