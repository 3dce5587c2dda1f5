"""Stability of PI control of the entropy: the linear loop, and the exact environment that it models."""

from dataclasses import replace
from math import inf

import numpy as np

from entrostat.numbers import pi_control

from ..claims.entropic import TARGET, TAU, alpha_star, resting_point
from ..claims.feedback import exact_loops, plant_gain
from ..trial import Outcome, Parameter, trial
from .control import ALPHA_MAX

STEPS, LATE = 120, 20
"""Number of rollouts of a loop, and of the last ones that decide if it has settled."""
S = Parameter(
    key="s",
    label="Proportional gain times plant gain",
    symbol="g·Kp",
    default=0.5,
    low=0.0,
    high=2.5,
    step=0.05,
    help="g is the fall of entropy in a rollout per unit of α.",
)
C = Parameter(
    key="c",
    label="Integral gain times plant gain",
    symbol="g·Ki",
    default=0.3,
    low=0.0,
    high=4.5,
    step=0.05,
    help="0 is P control, which leaves an error if there is a drift.",
)


def claimed(s: float, c: float) -> tuple[bool, str]:
    """Return True if the loop is stable by the condition, and the condition's text."""
    stable = bool(pi_control.stable(1.0, s, c))
    return stable, f"2gKp + gKi = {2 * s + c:.2f}, and the condition calls this {'stable' if stable else 'unstable'}"


@trial(
    "linear-loop",
    S,
    C,
    Parameter(
        key="drift",
        label="Drift of the entropy",
        symbol="d",
        unit="nats per rollout",
        default=0.05,
        low=-0.2,
        high=0.2,
        step=0.01,
        help="Change of the entropy in a rollout without control.",
    ),
    replace(
        ALPHA_MAX,
        default=10.0,
        low=0.01,
        step=0.01,
        help="α is clipped to ± this, in nats per rollout; 10 is hardly a bound.",
    ),
)
def linear_loop(s: float, c: float, drift: float, alpha_max: float) -> Outcome:
    """The linear loop from an error of .1 nats: the error should return to 0 if and only if the condition holds. The
    prediction is ± the part of the first error that the larger pole leaves."""
    stable, told = claimed(s, c)
    error = pi_control.step_response(1.0, s, c, error=0.1, drift=drift, alpha_max=alpha_max, steps=STEPS).numpy()
    radius = float(pi_control.poles(1.0, s, c).abs().max())
    back = bool(np.abs(error[-LATE:]).max() < 0.1)
    return Outcome(
        x=np.arange(STEPS + 1, dtype=np.float64),
        x_title="rollout",
        predicted=np.where(error < 0, -0.1, 0.1) * radius ** np.arange(STEPS + 1),
        measured=error,
        y_title="error e = H − H* (nats)",
        holds=back == stable,
        because=f"{told}; the larger pole is {radius:.3f}, and the error is "
        f"{np.abs(error[-LATE:]).max():.2g} nats late in the run.",
    )


@trial(
    "exact-loop",
    S,
    C,
    Parameter(
        key="lr",
        label="Learning rate",
        symbol="η",
        default=2.0,
        low=0.5,
        high=8.0,
        step=0.5,
        help="Scales g; the gains Kp and Ki are scaled inversely, so that g·Kp and g·Ki do not change.",
    ),
    replace(ALPHA_MAX, default=10.0, help="α is clipped to ± this; 10 is hardly a bound. The drift needs .41."),
)
def exact_loop(s: float, c: float, lr: float, alpha_max: float) -> Outcome:
    """EntroPIC on one state with expected gradients, started at the target of 1 nat, compared with the linear loop with
    the plant gain measured there."""
    stable, told = claimed(s, c)
    g = plant_gain(lr)
    args = {"kp": [s / g], "ki": [c / g], "tau": TAU, "alpha_max": alpha_max}
    error = exact_loops(args, lr, STEPS)[0] - TARGET
    drift = -g * float(alpha_star(resting_point(inf)))
    linear = pi_control.step_response(g, s / g, c / g, error=0.0, drift=drift, steps=STEPS).numpy()
    late = float(np.abs(error[-LATE:]).max())
    return Outcome(
        x=np.arange(STEPS + 1, dtype=np.float64),
        x_title="rollout",
        predicted=linear,
        measured=error,
        y_title="error e = H − H* (nats)",
        holds=(late < 1e-2) == stable,
        because=f"{told} (g = {g:.4f}); the error is {late:.2g} nats late in the run.",
    )
