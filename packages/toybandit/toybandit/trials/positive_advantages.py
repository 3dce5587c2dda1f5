"""Entropy flow of tokens by the sign of their advantage."""

from dataclasses import replace

import numpy as np

from ..claims.positive_advantages import SignProbe
from ..claims.runs import trajectory
from ..instruments import at_hand
from ..trial import Outcome, Parameter, trial
from .rules import ENV, PASSES, ROLLOUTS, SIZE


@trial(
    "flow-by-sign",
    Parameter(
        key="clip",
        label="Ratio clip of .2",
        default=True,
        help="On: the clip stops tokens whose ratio has moved by more than .2.",
    ),
    replace(PASSES, default=8),
    ROLLOUTS,
    ENV,
)
def flow_by_sign(clip: bool, passes: int, rollouts: int, env: str) -> Outcome:
    """Summed entropy flow of the tokens with A > 0 and with A < 0 that are not clipped, over a run. The prediction is
    the measured size, below 0 for A > 0 and above 0 for A < 0."""
    with at_hand(sign_probe=SignProbe):
        controller = f"{'grpo' if clip else 'clip_free'}+sign_probe"
        metrics = trajectory(SIZE, env=env, controller=controller, passes=passes, rollouts=rollouts).metrics
    flows = np.array([float(metrics[f"{sign} flow"].sum(-1).mean()) for sign in ("positive", "negative")])
    return Outcome(
        x=np.arange(2, dtype=np.float64),
        x_title="tokens",
        names=("A > 0", "A < 0"),
        predicted=np.array([-1.0, 1.0]) * np.abs(flows),
        measured=flows,
        y_title="entropy flow over the run (nats per unit step)",
        holds=bool(flows[0] < 0 < flows[1]),
        because=f"tokens with A > 0 have a flow of {flows[0]:+.3f}, those with A < 0 of {flows[1]:+.3f}; the claim is "
        "that the first lower the entropy and the second raise it.",
    )
