"""Closed loops whose measurement of the entropy is some rollouts old."""

from typing import Any

import numpy as np

from entrostat import Chain

from ..claims.delays import LOOPS, SWING, delayed
from ..claims.feedback import GOAL
from ..claims.mutations import Swap
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, trial
from .rules import SIZE, over_time

ROLLOUTS, LATE = 60, 20
"""Rollouts of a run, and the last ones, which are judged."""
NOISE = 0.05
"""Swing of 8 states without a delay, nats."""


@trial(
    "delayed-loop",
    Parameter(
        key="loop",
        label="Controller",
        default="thermostat",
        options=tuple(name for name in LOOPS if name != "Pos-Adv-Reweight"),  # too slow for these runs
        help="adaptive entropy, adaptive clip and STARE move by fixed steps; the answer of EntroPIC grows with the "
        "error; thermostat finds the delay and counts what it has planned since.",
    ),
    Parameter(
        key="delay",
        label="Age of the measurement",
        symbol="k",
        unit="rollouts",
        default=2,
        low=0,
        high=16,
        step=1,
        help="The controller sees the entropy of so many rollouts before; 0 is the present one.",
    ),
)
def delayed_loop(loop: str, delay: int) -> Outcome:
    """A controller with a target that sees an old entropy, over 8 runs of 8 states; judged is the root mean square of
    the error over the last 20 of 60 rollouts."""
    settings: dict[str, Any] = {"env": "noisy", "target": GOAL, "rollouts": ROLLOUTS, "passes": 8}
    with Swap(Chain, "observe", delayed(delay))():
        entropy = entropies(SIZE, **settings, **LOOPS[loop])
    swing = float(np.sqrt(((entropy[:, -LATE:] - GOAL) ** 2).mean(-1)).mean())
    return over_time(
        entropy.mean(0),
        GOAL,
        swing <= SWING + NOISE,
        f"H is {swing:.3f} nats from the target, root mean square; up to {SWING + NOISE:g} counts as holding it, of "
        f"which {NOISE:g} is for the noise of so few states.",
    )
