"""Responses of four tokens, weighted by a kernel of their importance ratio, and used for many updates."""

from dataclasses import replace

import numpy as np

from ..claims.runs import trajectory
from ..claims.staleness import KERNELS, RUN
from ..trial import Outcome, Parameter, trial
from .rules import PASSES, SIZE

RISE = 0.005
"""Least rise of the reward over the second half of a run that counts as training."""


@trial(
    "staleness",
    Parameter(
        key="kernel",
        label="Weight of a response",
        default="VESPO",
        options=tuple(KERNELS),
        help="VESPO: e^λ·w^k·e^(−λw), which falls for a large ratio w. φ = w: importance sampling.",
    ),
    replace(PASSES, default=8, high=32),
)
def staleness(kernel: str, passes: int) -> Outcome:
    """Expected reward of 4 runs in `episodes`; it should still rise in the second half of the run."""
    few = replace(SIZE, runs=4)
    reward = trajectory(few, controller="vespo", controller_args=KERNELS[kernel], passes=passes, **RUN).reward.mean(0)
    half = len(reward) // 2
    rise = float(reward[-1] - reward[half])
    return Outcome(
        x=np.arange(len(reward), dtype=np.float64),
        x_title="rollout",
        predicted=np.maximum(reward, np.where(np.arange(len(reward)) > half, reward[half] + RISE, 0)),
        measured=reward,
        y_title="expected reward R",
        holds=rise >= RISE,
        because=f"in the second half of the run the reward changes by {rise:+.4f}; the claim is a rise of {RISE}.",
    )
