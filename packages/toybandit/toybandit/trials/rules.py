"""Final entropy of a small bandit against one hyperparameter: covariance rules, clipping, bonuses, reuse."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from entrostat import CompositionWarning

from ..claims.checks import Values, rising
from ..claims.registry import Effort
from ..claims.runs import entropies, side_by_side
from ..trial import Outcome, Parameter, nearest_rising, trial

SIZE = Effort(instances=8, runs=8, states=8, rollouts=30)
"""Size of the bandits: 8 runs of 8 states."""
PASSES = Parameter(
    key="passes",
    label="Updates per rollout",
    symbol="M",
    default=4,
    low=1,
    high=8,
    step=1,
    help="1 is strictly on-policy: no sample is reused.",
)
ROLLOUTS = Parameter(
    key="rollouts",
    label="Rollouts",
    symbol="T",
    default=30,
    low=10,
    high=80,
    step=10,
    help="Length of the run.",
)
LR = Parameter(
    key="lr",
    label="Learning rate",
    symbol="η",
    default=0.5,
    low=0.1,
    high=8.0,
    step=0.1,
    help="Step on the mean gradient of a state.",
)
ENV = Parameter(
    key="env",
    label="Environment",
    default="noisy",
    options=("noisy", "det", "pure"),
    help="noisy: right arms pay with probability .6, others with .3. det: 1 and 0. pure: all alike, so no signal.",
)
FLAT = 1e-9
"""Largest difference of entropies that counts as rounding, nats."""


def over_time(measured: Values, predicted: Values | float, holds: bool, because: str) -> Outcome:
    """Return the outcome of a claim on the mean entropy before each rollout and at the end, (rollouts + 1,)."""
    return Outcome(
        x=np.arange(len(measured), dtype=np.float64),
        x_title="rollout",
        predicted=np.broadcast_to(np.asarray(predicted, dtype=np.float64), measured.shape),
        measured=measured,
        y_title="mean entropy H (nats)",
        holds=holds,
        because=because,
    )


def ends_above(measured: Values, fixed: Values, under: str, margin: float = 0.0) -> Outcome:
    """Return the outcome of the claim that `measured` ends above `fixed`, the runs under `under`, (rollouts + 1,)."""
    return over_time(
        measured,
        np.maximum(measured, fixed + margin),
        bool(measured[-1] > fixed[-1] + margin),
        f"H ends at {measured[-1]:.3f}, and at {fixed[-1]:.3f} under {under}.",
    )


def ends(varied: Mapping[str, Sequence[float]], **config: Any) -> Values:
    """Return the final entropy at each setting of the hyperparameters, (settings, runs), nats; seeds are shared."""
    with catch_warnings():
        simplefilter("ignore", CompositionWarning)  # a slider may select a rule without effect
        return side_by_side(SIZE, varied, **config)[:, :, -1]


def monotone(ends: Values, x: Sequence[float], x_title: str, *, falls: bool = False, log_x: bool = False) -> Outcome:
    """Return the outcome of a claim that the mean of `ends` (settings, runs) rises with x, or falls, at every step.

    The prediction is the means themselves if they do, else the nearest numbers that do.
    """
    sign = -1 if falls else 1
    mean = ends.mean(-1)
    holds = rising(*(sign * ends)).holds and bool((sign * np.diff(mean)).min() > FLAT)
    step = int((sign * np.diff(mean)).argmin())
    if holds:
        told = f"it {'falls' if falls else 'rises'} at every step, from {mean[0]:.3f} to {mean[-1]:.3f}"
    else:
        told = (
            f"from {x[step]:g} to {x[step + 1]:g} it goes from {mean[step]:.3f} to {mean[step + 1]:.3f}, but should "
            f"{'fall' if falls else 'rise'}"
        )
    return Outcome(
        x=np.asarray(x, dtype=np.float64),
        x_title=x_title,
        predicted=sign * nearest_rising(sign * mean),
        measured=mean,
        y_title="final entropy H (nats)",
        holds=holds,
        because=f"final entropy by {x_title}: {told}.",
        log_x=log_x,
    )


CLIP_COV, KL_COV = "Clip-Cov", "KL-Cov"


@trial(
    "covariance-rules",
    Parameter(
        key="rule",
        label="Rule",
        default=CLIP_COV,
        options=(CLIP_COV, KL_COV),
        help="Clip-Cov drops a share of the tokens of high covariance, KL-Cov penalises their divergence.",
    ),
    Parameter(
        key="largest",
        label="Largest strength",
        default=0.1,
        low=0.02,
        high=1.0,
        step=0.02,
        help="Strength of the rule: the share k that Clip-Cov drops, or a hundredth of the penalty β of KL-Cov.",
    ),
    PASSES,
    ROLLOUTS,
    ENV,
)
def covariance_rules(rule: str, largest: float, passes: int, rollouts: int, env: str) -> Outcome:
    """A rule on the tokens of high covariance, at four strengths; k of KL-Cov is .02."""
    strengths = largest * np.array([0.1, 0.2, 0.5, 1.0])
    settings = {"env": env, "passes": passes, "rollouts": rollouts}
    if rule == CLIP_COV:
        found = ends({"k": strengths.tolist()}, controller="clip_cov", **settings)
        return monotone(found, strengths.tolist(), "share k that is dropped", log_x=True)
    beta = (100 * strengths).tolist()
    found = ends({"beta": beta, "k": [0.02] * len(beta)}, controller="kl_cov", **settings)
    return monotone(found, beta, "penalty β", log_x=True)


@trial(
    "kl-cov-is-grpo",
    Parameter(
        key="beta",
        label="Penalty",
        symbol="β",
        default=10.0,
        low=0.0,
        high=20.0,
        step=0.5,
        help="Penalty of KL-Cov.",
    ),
    Parameter(
        key="k",
        label="Penalised share",
        symbol="k",
        default=0.02,
        low=0.01,
        high=0.5,
        step=0.01,
        help="Share of the tokens, of highest covariance.",
    ),
    replace(PASSES, default=1),
    ROLLOUTS,
)
def kl_cov_is_grpo(beta: float, k: float, passes: int, rollouts: int) -> Outcome:
    """The mean entropy of the same runs under KL-Cov and under GRPO without a ratio clip, since KL-Cov has none."""
    shared = {"env": "on", "passes": passes, "rollouts": rollouts}
    with catch_warnings():
        simplefilter("ignore", CompositionWarning)  # the warning announces the effect measured here
        penalised = entropies(SIZE, controller="kl_cov", controller_args={"beta": beta, "k": k}, **shared)
    grpo = entropies(SIZE, controller="clip_free", **shared)
    difference = float(np.abs(penalised - grpo).max())
    return over_time(
        penalised.mean(0),
        grpo.mean(0),
        difference < 1e-12,
        f"the entropies of a run under KL-Cov and under GRPO differ by at most {difference:.1e} nats.",
    )


UPPER, LOWER, BOTH = "upper", "lower", "both"
BOUNDS = (0.1, 0.2, 0.28, 0.5, 0.99)


@trial(
    "clipping",
    Parameter(
        key="bound",
        label="Widened bound",
        default=UPPER,
        options=(UPPER, LOWER, BOTH),
        help="upper: H should rise. lower: H should fall. both: H should rise, up to almost no clipping.",
    ),
    Parameter(
        key="other",
        label="The other bound",
        symbol="ε",
        default=0.2,
        low=0.05,
        high=0.95,
        step=0.05,
        help="Clipping threshold that does not change.",
    ),
    replace(PASSES, default=8),
    ROLLOUTS,
    ENV,
)
def clipping(bound: str, other: float, passes: int, rollouts: int, env: str) -> Outcome:
    """The ratio is clipped at 1 − ε_low and 1 + ε_high, and one or both of the two thresholds are widened."""
    wide, stays = list(BOUNDS), [other] * len(BOUNDS)
    varied = {
        "eps_low": stays if bound == UPPER else wide,
        "eps_high": stays if bound == LOWER else wide,
    }
    found = ends(varied, controller="ppo", env=env, passes=passes, rollouts=rollouts)
    title = {UPPER: "upper threshold ε_high", LOWER: "lower threshold ε_low", BOTH: "both thresholds ε"}[bound]
    return monotone(found, BOUNDS, title, falls=bound == LOWER)


BONUS, ADVANTAGE = "bonus in the loss", "part of the advantage"


@trial(
    "bonus",
    Parameter(
        key="way",
        label="Entropy as a",
        default=BONUS,
        options=(BONUS, ADVANTAGE),
        help="A bonus in the loss should raise the final H; entropy as a part of the advantage should lower it.",
    ),
    Parameter(
        key="largest",
        label="Largest coefficient",
        default=0.1,
        low=0.01,
        high=4.0,
        step=0.01,
        help="The experiment uses five coefficients from 0 to this.",
    ),
    LR,
    PASSES,
    ROLLOUTS,
    ENV,
)
def bonus(way: str, largest: float, lr: float, passes: int, rollouts: int, env: str) -> Outcome:
    """Entropy is rewarded with a coefficient that rises from 0, which is GRPO."""
    coefficients = (largest * np.linspace(0, 1, 5)).tolist()
    name, controller = ("coef", "entropy_bonus") if way == BONUS else ("alpha", "entropy_advantage")
    found = ends({name: coefficients}, controller=controller, env=env, lr=lr, passes=passes, rollouts=rollouts)
    title = "coefficient of the bonus" if way == BONUS else "entropy's part α of the advantage"
    return monotone(found, coefficients, title, falls=way == ADVANTAGE)


REUSE = (1, 2, 4, 8)


@trial(
    "reuse",
    LR,
    replace(ROLLOUTS, default=10),
    ENV,
)
def reuse(lr: float, rollouts: int, env: str) -> Outcome:
    """The samples of each rollout are used in 1, 2, 4 and 8 updates; measured is the entropy after equal rollouts."""
    shared = {"env": env, "lr": lr, "rollouts": rollouts}
    found = np.stack([entropies(SIZE.times(2), passes=passes, **shared)[:, -1] for passes in REUSE])
    return monotone(found, REUSE, "updates per rollout M", falls=True)
