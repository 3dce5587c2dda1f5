"""Trap: a rare arm pays best. Share of states in which it is found, and the reward that control gains or costs."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..claims.checks import Values
from ..claims.trap import CONTROLS, FEW, GRPO, HOLDING, RARE, TARGET, TEMPTING, TOO_LATE, changed_arm
from ..config import Config
from ..environments import ENVIRONMENTS
from ..simulator import simulate
from ..trajectory import Trajectory
from ..trial import Outcome, Parameter, nearest_rising, trial
from . import control
from .rules import LR, over_time

SEEDS = range(8)
SIZE: dict[str, Any] = {"states": 8, "passes": 2, "rollouts": 200}
GROUP = Parameter(
    key="group",
    label="Group size",
    symbol="G",
    default=16,
    low=4,
    high=64,
    step=4,
    help="Responses to a prompt in one rollout.",
)
SPEED = replace(LR, default=3.0)
HELD = replace(control.TARGET, default=TARGET, high=2.4, help="Target of the thermostat.")
RARE_LOGIT = Parameter(
    key="rare",
    label="Logit of the best arm",
    default=-2.5,
    low=-4.0,
    high=2.0,
    step=0.5,
    help="Initial logit of the arm that always pays. The tempting arm's is 2.",
)
STAYS, LATE = "GRPO stays in the trap", "control comes too late"


def share(run: Trajectory) -> Values:
    """Return the share of states whose rare arm is the likelier one, before each rollout and at the end, (T + 1,)."""
    assert run.policies is not None
    found: Values = (run.policies[..., RARE] > run.policies[..., TEMPTING]).mean((0, 2))
    return found


def trained(
    config: dict[str, Any], start: Values | None = None, *, rare: float = -2.5, pays: float = 1.0
) -> Trajectory:
    """Simulate runs in `trap`, whose rare arm has this logit and pays this often."""
    trap = changed_arm(rare, pays)(ENVIRONMENTS["trap"])
    whole = {"env": "trap", **SIZE, "logits": trap.logits, "success": trap.success, **config}
    return simulate(Config(**whole), SEEDS, keep_policies=True, start=start)


@trial(
    "trap",
    Parameter(
        key="claimed",
        label="The claim",
        default=STAYS,
        options=(STAYS, LATE),
        help=f"Stays: the best arm is the likelier one in at most {FEW:.0%} of the states. Too late: control finds it "
        f"in at most {TOO_LATE:g} times as many states as control from the start.",
    ),
    Parameter(
        key="control",
        label="Control",
        default=GRPO,
        options=tuple(CONTROLS),
        help="GRPO: none. thermostat: a bonus that is solved for. fixed bonus: one constant coefficient.",
    ),
    Parameter(
        key="before",
        label="Rollouts of GRPO before",
        default=0,
        low=0,
        high=600,
        step=50,
        help="Rollouts without control before the shown ones.",
    ),
    RARE_LOGIT,
    GROUP,
    SPEED,
)
def trap(claimed: str, control: str, before: int, rare: float, group: int, lr: float) -> Outcome:
    """Share of states in which the best arm is likelier than the tempting one, over 8 runs of 8 states."""
    numbers = {"group": group, "lr": lr}
    start = trained({**numbers, "rollouts": before}, rare=rare).logits if before else None
    run = trained({**numbers, **CONTROLS[control]}, start, rare=rare)
    found = share(run)
    if claimed == STAYS:
        outcome = over_time(
            found,
            0.0,
            bool(found[-1] <= FEW),
            f"the best arm is the likelier one in {found[-1]:.0%} of the states; the claim is at most {FEW:.0%}.",
        )
    else:
        at_once = share(trained({**numbers, **CONTROLS[control]}, rare=rare)) if before else found
        outcome = over_time(
            found,
            np.minimum(found, TOO_LATE * at_once),
            bool(found[-1] < TOO_LATE * at_once[-1]),
            f"the best arm is the likelier one in {found[-1]:.0%} of the states, with control from the start in "
            f"{at_once[-1]:.0%}; control began at H = {run.entropy[:, 0].mean():.3f} nats.",
        )
    return replace(outcome, y_title="share of states out of the trap")


ORDERS: dict[str, tuple[float, ...]] = {"target": (0.2, 0.8, 1.4), "group": (8, 16, 32), "lr": (1.0, 2.0, 4.0)}
"""Values of what is varied."""


@trial(
    "trap-escape",
    Parameter(
        key="varied",
        label="Varied",
        default="target",
        options=tuple(ORDERS),
        help="Target entropy, group size or learning rate; the others keep the values below.",
    ),
    Parameter(
        key="pays",
        label="The rare arm pays",
        default=1.0,
        low=0.3,
        high=1.0,
        step=0.1,
        help="Probability that the rare arm is rewarded. The tempting arm pays .5, all others .3.",
    ),
    replace(HELD, default=0.8),
    GROUP,
    SPEED,
)
def trap_escape(varied: str, pays: float, target: float, group: int, lr: float) -> Outcome:
    """Share of states in which a thermostat has found the rare arm after 200 rollouts, for three values."""
    values = ORDERS[varied]
    base: dict[str, Any] = {"target": target, "group": group, "lr": lr}
    found = np.array(
        [
            share(trained({**CONTROLS[HOLDING], **base, varied: int(x) if varied == "group" else x}, pays=pays))[-1]
            for x in values
        ]
    )
    return Outcome(
        x=np.array(values, dtype=np.float64),
        x_title={"target": "target entropy H* (nats)", "group": "group size G", "lr": "learning rate η"}[varied],
        predicted=nearest_rising(found),
        measured=found,
        y_title="share of states out of the trap",
        holds=bool((np.diff(found) > 0).all()),
        because=f"the shares are {', '.join(f'{share:.0%}' for share in found)}; the claim is that they rise.",
    )


@trial(
    "trap-price",
    Parameter(
        key="env",
        label="Environment",
        default="trap",
        options=("trap", "noisy", "det"),
        help="trap: the best arm is seldom drawn. noisy, det: 4 of 16 arms are right, and GRPO finds one anyway.",
    ),
    HELD,
    SPEED,
)
def trap_price(env: str, target: float, lr: float) -> Outcome:
    """Expected reward of the same bandits under a thermostat and under GRPO, over 8 runs of 8 states."""
    settings = {**SIZE, "env": env, "lr": lr}
    held, plain = (
        simulate(Config(**settings, **control), SEEDS).reward.mean(0)
        for control in ({**CONTROLS[HOLDING], "target": target}, {})
    )
    outcome = over_time(
        held,
        plain,
        bool(held[-1] > plain[-1]),
        f"the expected reward ends at {held[-1]:.3f}, under GRPO at {plain[-1]:.3f}; the claim is that it is higher.",
    )
    return replace(outcome, y_title="expected reward")
