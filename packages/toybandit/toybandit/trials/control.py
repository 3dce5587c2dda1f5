"""Closed loops: EntroPIC's P and PI control, in expectation and sampled, and controllers with a target."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from entrostat import describe

from ..claims.entropic import alpha_star, resting_point
from ..claims.feedback import SETTLED, late
from ..claims.holding import HELD, HOLDERS
from ..claims.runs import entropies, trajectory
from ..claims.start_entropy import SMOOTH, WIDER
from ..config import Config
from ..simulator import simulate
from ..trial import Outcome, Parameter, trial
from .rules import PASSES, ROLLOUTS, SIZE, over_time

KP = Parameter(
    key="kp",
    label="Proportional gain",
    symbol="Kp",
    unit="per nat",
    default=1.0,
    low=0.0,
    high=8.0,
    step=0.25,
    help="α per nat of error. Positive α lowers the entropy.",
)
KI = Parameter(
    key="ki",
    label="Integral gain",
    symbol="Ki",
    unit="per nat and rollout",
    default=0.1,
    low=0.0,
    high=0.5,
    step=0.01,
    help="α per nat in the sum of errors. 0 is P control.",
)
TAU = Parameter(
    key="tau",
    label="Threshold",
    symbol="τ",
    default=0.5,
    low=0.0,
    high=0.99,
    step=0.01,
    help="The controller acts on tokens with a probability above this. 0 acts on all.",
)
ALPHA_MAX = Parameter(
    key="alpha_max",
    label="Bound of α",
    symbol="α_max",
    default=1.0,
    low=0.1,
    high=10.0,
    step=0.1,
    help="α is clipped to ± this.",
)
TARGET = Parameter(
    key="target",
    label="Target entropy",
    symbol="H*",
    unit="nats",
    default=0.6,
    low=0.0,
    high=2.75,
    step=0.05,
    help="Target of the controller.",
)
LR = Parameter(
    key="lr",
    label="Learning rate",
    symbol="η",
    default=1.0,
    low=0.1,
    high=8.0,
    step=0.1,
    help="Step on the mean gradient of a state.",
)


ERROR_ZERO, CLOSED_FORM = "H = H*", "H = H* − α*/Kp"
EXACT_TARGET, EXACT_ROLLOUTS = 1.0, 120
NEAR = 1e-3
"""Largest difference that counts as none in the exact environment, nats."""


@trial(
    "p-and-pi",
    Parameter(
        key="rest",
        label="Resting point of H",
        default=ERROR_ZERO,
        options=(ERROR_ZERO, CLOSED_FORM),
        help="The target, as theorems 4.2 and 4.3 say, or a point short of it, where P control just cancels the drift.",
    ),
    KP,
    KI,
    TAU,
    Parameter(
        key="right",
        label="The right arm pays",
        symbol="q₁",
        default=0.6,
        low=0.5,
        high=0.9,
        step=0.01,
        help="The other 15 arms pay 1 − q₁. At .5 all arms pay alike, and the entropy does not drift.",
    ),
    replace(LR, default=8.0, high=20.0),
)
def p_and_pi(rest: str, kp: float, ki: float, tau: float, right: float, lr: float) -> Outcome:
    """EntroPIC with a target of 1 nat on one state with expected gradients, started near the target: deterministic."""
    config = Config(
        env="exact",
        controller="entropic",
        target=EXACT_TARGET,
        controller_args={"kp": kp, "ki": ki, "tau": tau, "alpha_max": 10.0},
        reward_right=right,
        reward_wrong=1 - right,
        right_logit=4.0,
        lr=lr,
        rollouts=EXACT_ROLLOUTS,
    )
    entropy = simulate(config).entropy[0]
    goal = EXACT_TARGET
    if rest == CLOSED_FORM:
        environment = config.environment()
        goal -= float(alpha_star(resting_point(kp, environment), environment)) / kp if kp > 0 else inf
    gap = float(abs(entropy[-20:] - goal).max())
    return over_time(
        entropy,
        goal if goal > -inf else float("nan"),
        gap < NEAR,
        f"late in the run H is {entropy[-1]:.4f}, which is {entropy[-1] - goal:+.4f} from the claimed {goal:.4f}.",
    )


HELD_THERE, LOST = "held at the target", "lost: falls past the target"


@trial(
    "feedback",
    Parameter(
        key="claimed",
        label="The entropy is",
        default=HELD_THERE,
        options=(HELD_THERE, LOST),
        help="The claim. Lost: the entropy falls more than .2 below the target, and |α| grows by more than .5 over the "
        "second half of the run.",
    ),
    replace(KP, default=4.0),
    replace(KI, default=0.2),
    TAU,
    ALPHA_MAX,
    PASSES,
    TARGET,
    LR,
)
def feedback(
    claimed: str, kp: float, ki: float, tau: float, alpha_max: float, passes: int, target: float, lr: float
) -> Outcome:
    """EntroPIC in noisy, over 8 runs of 8 states, with samples reused or strictly on-policy."""
    args = {"kp": kp, "ki": ki, "tau": tau, "alpha_max": alpha_max}
    settings = {"env": "noisy", "lr": lr, "passes": passes, "rollouts": 60 if passes > 1 else 100}
    run = trajectory(SIZE, controller="entropic", target=target, controller_args=args, **settings)
    end = float(late(run.entropy).mean())
    alpha = np.abs(run.metrics["entropic/alpha"]).mean(0)
    middle, last = alpha[len(alpha) // 2], alpha[-1]
    if claimed == HELD_THERE:
        holds, told = abs(end - target) < SETTLED, f"the claim is that it is less than {SETTLED} away"
    else:
        holds = end < target - 0.2 and last > middle + 0.5
        told = f"|α| goes from {middle:.1f} half-way to {last:.1f}; the claim is that the entropy is lost and α grows"
    return over_time(
        run.entropy.mean(0),
        target,
        bool(holds),
        f"late in the runs H is {end:.3f}, {end - target:+.3f} from the target; {told}.",
    )


RATE = describe("thermostat")["hyperparameters"]["rate"]["default"]
"""Default upper limit for the thermostat's entropy change per rollout, nats."""
UNDERSHOOT = 0.1
"""Smallest fall below the target that counts, nats."""
TRIED: dict[str, dict[str, Any]] = HOLDERS | {
    "thermostat": {"controller": "thermostat", "controller_args": {"rate": RATE}},
    **{
        f"thermostat, {mode}": {"controller": "thermostat", "controller_args": {"rate": RATE, "mode": mode}}
        for mode in ("anchor", "anchor+bonus")
    },
    "REPO-R": {"controller": "repo_r", "controller_args": {"zeta_max": WIDER}},
    "ADAPO": {"controller": "adapo"},
    "AER": {"controller": "aer", "controller_args": SMOOTH},
    "PAPO": {"controller": "papo"},
}
"""Controllers with a target, with their hyperparameters."""


@trial(
    "windup",
    Parameter(
        key="anti_windup",
        label="Anti-windup",
        default=True,
        help="On: the sum of errors stops while α is saturated. In the released code it does not.",
    ),
    replace(KP, default=4.0),
    KI,
    replace(TAU, default=0.8),
    ALPHA_MAX,
    replace(TARGET, default=0.3),
    LR,
)
def windup(anti_windup: bool, kp: float, ki: float, tau: float, alpha_max: float, target: float, lr: float) -> Outcome:
    """PI control from far above the target, in noisy; measured is how far the entropy falls below the target."""
    args = {"kp": kp, "ki": ki, "tau": tau, "alpha_max": alpha_max, "anti_windup": anti_windup}
    settings = {"env": "noisy", "lr": lr, "passes": 4, "rollouts": 60}
    entropy = entropies(SIZE, controller="entropic", target=target, controller_args=args, **settings)
    under = float(target - entropy.min(-1).mean())
    return over_time(
        entropy.mean(0),
        target,
        under < UNDERSHOOT,
        f"a run falls {under:.3f} below the target on average; the claim is less than {UNDERSHOOT}.",
    )


@trial(
    "holding",
    Parameter(
        key="controller",
        label="Controller",
        default="thermostat",
        options=tuple(TRIED),
        help="adaptive entropy: a bonus that is on below the target. Pos-Adv-Reweight: a weight on rewarded tokens. "
        "thermostat: a bonus that is solved for, or a penalty to the initial policy (anchor). adaptive clip: the upper "
        "bound of the ratio, from .8 and 1.25. STARE: "
        "weights on the least likely tokens of either sign. REPO-R: weights by log π. ADAPO: the upper bound, by "
        "factors. AER: a bonus for prompts that are not solved. PAPO: weights by the sign of each token's flow.",
    ),
    Parameter(
        key="env",
        label="Environment",
        default="noisy",
        options=("noisy", "on", "pure", "det"),
        help="noisy: right arms pay with probability .6, others with .3. on: the same, with one update per rollout. "
        "pure: all alike. det: 1 and 0, so in the end every sample is right and no advantage is left.",
    ),
    replace(TARGET, high=2.95),
    Parameter(
        key="speed",
        label="Speed of the controller",
        default=4.0,
        low=0.5,
        high=8.0,
        step=0.5,
        help="Largest step in a rollout, relative to its value in `toybandit verify`, which has longer runs. 4: the "
        "bonus moves by .02, the weight by .2, or the entropy by .08 nats. REPO-R, ADAPO and PAPO have no such step.",
    ),
    replace(PASSES, default=2),
    replace(ROLLOUTS, default=40),
    LR,
)
def holding(controller: str, env: str, target: float, speed: float, passes: int, rollouts: int, lr: float) -> Outcome:
    """A controller with a target, over 8 runs of 8 states; judged is the mean entropy in the last fifth of the runs."""
    settings: dict[str, Any] = {"env": env, "lr": lr, "passes": 1 if env == "on" else passes, "rollouts": rollouts}
    holder = TRIED[controller]
    args = dict(holder.get("controller_args", {}))
    for step in {"delta", "rate"} & set(args):
        args[step] *= speed
    entropy = entropies(SIZE, target=target, **settings, **{**holder, "controller_args": args})
    end = float(late(entropy).mean())
    return over_time(
        entropy.mean(0),
        target,
        abs(end - target) < HELD,
        f"late in the runs H is {end:.3f}, {end - target:+.3f} from the target; the claim is less than {HELD}.",
    )
