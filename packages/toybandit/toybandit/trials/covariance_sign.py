"""Covariance of log π and π·A over a run."""

from dataclasses import replace

import numpy as np

from ..claims.covariance_sign import course
from ..trial import Outcome, Parameter, trial
from .rules import LR, PASSES, ROLLOUTS, SIZE


@trial(
    "covariance-sign",
    Parameter(
        key="tilt",
        label="What the policy knows at the start",
        default=0.5,
        low=-1.0,
        high=1.0,
        step=0.1,
        help="Above 0 right arms are likelier at the start, below 0 less likely; 0: right arms are anywhere.",
    ),
    replace(PASSES, default=1),
    replace(ROLLOUTS, default=40),
    replace(LR, default=1.0),
)
def covariance_sign(tilt: float, passes: int, rollouts: int, lr: float) -> Outcome:
    """Mean covariance over states and runs before each rollout of GRPO; the prediction is that it is positive."""
    found = course(SIZE, tilt, rollouts, passes=passes, lr=lr).with_p.mean(0)
    lowest = int(found.argmin())
    return Outcome(
        x=np.arange(len(found), dtype=np.float64),
        x_title="rollout",
        predicted=np.maximum(found, 0),
        measured=found,
        y_title="Cov(log π, π·A) (nats)",
        holds=bool(found.min() > 0),
        because=f"the smallest covariance is {found.min():+.5f}, at rollout {lowest}; the claim is that all are "
        "positive.",
    )
