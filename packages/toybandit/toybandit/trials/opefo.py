"""OPEFO: effect of balancing the flows of a mini-batch on the entropy."""

import numpy as np
import torch

from ..claims.ensembles import STEPS, order
from ..claims.opefo import KEPT
from ..claims.runs import entropies
from ..config import Config
from ..simulator import simulate
from ..trial import Outcome, Parameter, trial
from .rules import SIZE, over_time

PAPER, EXACT = "paper", "exact"
ESTIMATOR = Parameter(
    key="estimator",
    label="Flow of a token",
    default=EXACT,
    options=(PAPER, EXACT),
    help="paper: equation 6, −A(1−p)²(log p + H). exact: the whole first order.",
)
COUPLING = Parameter(
    key="coupling",
    label="Coupling of the states",
    default=0.0,
    low=0.0,
    high=1.0,
    step=0.05,
    help="Share of a state's update that every other state gets, as with shared parameters. Flows ignore it.",
)


@trial(
    "opefo-step",
    ESTIMATOR,
    Parameter(
        key="log_eta",
        label="Largest step size, as a power of ten",
        symbol="log₁₀ η",
        default=-1.0,
        low=-3.0,
        high=1.5,
        step=0.25,
        help="The order is measured over two decades of step sizes up to this one.",
    ),
    COUPLING,
)
def opefo_step(estimator: str, log_eta: float, coupling: float) -> Outcome:
    """The size of the entropy change in one on-policy update, at five step sizes. The prediction is a change of order
    η² that equals the measurement at the largest step."""
    scale = 10**log_eta / float(STEPS[0])
    sizes = (scale * STEPS).tolist()
    runs = SIZE.runs
    config = Config(
        env="on",
        states=SIZE.states,
        rollouts=1,
        controller="opefo",
        controller_args={"estimator": estimator},
        coupling=coupling,
        lr=tuple(eta for eta in sizes for _ in range(runs)),
    )
    entropy = simulate(config, list(range(runs)) * len(sizes)).entropy
    change = np.abs(entropy[:, 1] - entropy[:, 0]).reshape(len(sizes), runs)
    slope = float(order(torch.as_tensor(change)).mean())
    mean, eta = change.mean(-1)[::-1], np.array(sizes)[::-1]
    return Outcome(
        x=eta,
        x_title="step size η",
        predicted=mean[-1] * (eta / eta[-1]) ** 2,
        measured=mean,
        y_title="change of entropy |ΔH| (nats)",
        holds=1.9 <= slope <= 2.1,
        because=f"up to η = {eta[-1]:.2g} the change vanishes like η to the power {slope:.2f}; flows that cancel "
        "leave 2.",
        log_x=True,
        log_y=True,
    )


@trial(
    "opefo-run",
    ESTIMATOR,
    Parameter(
        key="lr",
        label="Learning rate",
        symbol="η",
        default=0.2,
        low=0.05,
        high=4.0,
        step=0.05,
        help="Step on the mean gradient of a state. OPEFO cancels the first order in it.",
    ),
    Parameter(
        key="rollouts",
        label="Rollouts",
        symbol="T",
        default=80,
        low=20,
        high=200,
        step=20,
        help="Length of the run.",
    ),
    COUPLING,
)
def opefo_run(estimator: str, lr: float, rollouts: int, coupling: float) -> Outcome:
    """Mean entropy of 8 runs of 8 states under OPEFO, strictly on-policy; it should stay at its initial value."""
    args = {"estimator": estimator}
    settings = {"env": "on", "lr": lr, "rollouts": rollouts, "coupling": coupling}
    entropy = entropies(SIZE, controller="opefo", controller_args=args, **settings).mean(0)
    change = float(entropy[-1] - entropy[0])
    return over_time(
        entropy,
        float(entropy[0]),
        abs(change) < KEPT,
        f"over {rollouts} rollouts the entropy changes by {change:+.3f} nats; the claim is less than {KEPT}.",
    )
