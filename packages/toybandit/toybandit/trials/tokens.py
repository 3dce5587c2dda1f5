"""Entropy change by one sampled token: tests of formulas for its size and its sign."""

from dataclasses import replace
from math import log

import numpy as np
import torch

from entrostat import policy_stats

from ..claims.assumption_1 import alone
from ..claims.ensembles import random_logits
from ..claims.registry import Effort
from ..claims.steer import ESTIMATES, estimates, estimates_of, weighted_pearson
from ..claims.steer import ranks as ranks_of
from ..claims.tokens import ARMS, STEP, every_token
from ..claims.tokens import boundary as star
from ..trial import Outcome, Parameter, nearest_rising, trial
from .first_order import STD

STATES = 24
"""Number of random policies whose tokens are drawn."""
TOLERANCE, WRONG = 1e-4, 1e-3
"""Relative squared error, and share of tokens with the wrong sign, below which a formula counts as right."""
LOG_P = "probability of the token, log₁₀ p"
LOG_ETA = Parameter(
    key="log_eta",
    label="Step size, as a power of ten",
    symbol="log₁₀ η",
    default=-3.0,
    low=-4.0,
    high=1.0,
    step=0.25,
    help="The change of entropy is measured with this step, and divided by it.",
)
WEIGHT = Parameter(
    key="weight",
    label="Weight of the token",
    symbol="w = A·r",
    default=1.0,
    low=-2.0,
    high=2.0,
    step=0.1,
    help="Advantage times importance ratio; the same for every token here. Negative: the token is punished.",
)


@trial(
    "token-flow",
    Parameter(
        key="estimator",
        label="Formula",
        default="exact",
        options=ESTIMATES,
        help="exact: the whole first order. own logit: only the effect of the token's own logit. STEER's Ω, OPEFO's "
        "equation 6 and Cov are as published, Ω with its sign; Cov is a score, not a change in nats.",
    ),
    LOG_ETA,
    WEIGHT,
    STD,
)
def token_flow(estimator: str, log_eta: float, weight: float, std: float) -> Outcome:
    """Every arm of 24 random policies is the sampled token once, and its measured entropy change is compared with the
    formula's."""
    logits = random_logits(STATES, ARMS, std, "trial policy")
    logp, advantage = policy_stats(logits).logp, torch.full_like(logits, weight)
    _, truth = every_token(logits, advantage, 10**log_eta)
    batch = (x.unsqueeze(0) for x in (logits, logp, advantage, logp.exp() / STATES))
    estimate = estimates_of(*batch)[estimator][0]
    power = float((truth**2).sum())
    error = float(((estimate - truth) ** 2).sum()) / power if power > 0 else float("nan")
    return Outcome(
        x=logp.flatten().numpy() / log(10),
        x_title=LOG_P,
        predicted=estimate.flatten().numpy(),
        measured=truth.flatten().numpy(),
        y_title="change of entropy per step ΔH/η (nats)",
        holds=error < TOLERANCE,
        because=f"the squared error of the formula is {error:.1e} of the squared change"
        f"{'' if error < TOLERANCE else f', not below {TOLERANCE:.0e}'}."
        if power > 0
        else "a token without weight changes nothing, so there is nothing to compare.",
        points=True,
    )


P_STAR, INVERSE = "p*", "e^(−H)"
WHOLE, OWN = "every logit", "its own logit"
MOVES = Parameter(
    key="moves",
    label="What a token moves",
    default=OWN,
    options=(OWN, WHOLE),
    help="The gradient of the softmax moves every logit of the state. STEER and OPEFO assume that only its own moves.",
)


@trial(
    "token-sign",
    Parameter(
        key="boundary",
        label="Boundary",
        default=P_STAR,
        options=(P_STAR, INVERSE),
        help="Claimed probability above which a rewarded token lowers the entropy. STEER and OPEFO use e^(−H).",
    ),
    replace(MOVES, default=WHOLE),
    LOG_ETA,
    WEIGHT,
    STD,
)
def token_sign(boundary: str, moves: str, log_eta: float, weight: float, std: float) -> Outcome:
    """Every arm of 24 random policies is the sampled token once. The prediction is the measured size with the sign
    given by the boundary, so tokens on its wrong side appear mirrored."""
    logits = random_logits(STATES, ARMS, std, "trial policy")
    stats = policy_stats(logits)
    p, inverse = stats.logp.exp(), (-stats.entropy).exp()
    edge = (star(logits) if boundary == P_STAR else inverse).unsqueeze(-1)
    weights, eta = torch.full_like(logits, weight), 10**log_eta
    truth = alone(logits, weights, eta) if moves == OWN else every_token(logits, weights, eta)[1]
    side = (edge - p).sign() * (1.0 if boundary == P_STAR or weight >= 0 else -1.0)
    clear = (p / edge - 1).abs() > 10 * STEP
    wrong = float((p * (clear & (side * truth < 0))).sum(-1).mean())
    moved = bool((truth != 0).any())
    ratio = float((edge.squeeze(-1) / inverse).median())
    return Outcome(
        x=stats.logp.flatten().numpy() / log(10),
        x_title=LOG_P,
        predicted=(side * truth.abs()).flatten().numpy(),
        measured=truth.flatten().numpy(),
        y_title="change of entropy per step ΔH/η (nats)",
        holds=moved and wrong < WRONG,
        because=f"{wrong:.1%} of the tokens that the policy samples move the entropy against the predicted sign; the "
        f"boundary is at {ratio:.2f}·e^(−H) in the median state."
        if moved
        else "a token without weight changes nothing, so it has no sign.",
        points=True,
    )


SMALL = Effort(instances=8, runs=4, states=64, rollouts=1)
SPREAD_OF_STATES = Parameter(
    key="spread",
    label="Difference between states",
    default=0.0,
    low=0.0,
    high=0.99,
    step=0.01,
    help="The logits of the states are multiplied by factors from 1 − this to 1 + this, so the policy is surer in some "
    "states than in others.",
)


@trial("estimates", SPREAD_OF_STATES, LOG_ETA)
def estimates_by_error(spread: float, log_eta: float) -> Outcome:
    """Mean squared error of each estimate of ΔH over the tokens of a rollout in noisy, from the most to the least
    complete estimate."""
    found, truth, share = estimates(SMALL, spread, 10**log_eta)
    error = np.array([float((share * (found[name] - truth) ** 2).sum(-1).mean()) for name in ESTIMATES])
    exact, own, steer, opefo, cov = error
    holds = bool(exact < own < min(steer, opefo) and max(steer, opefo) < cov)
    order = np.concatenate([[0, 1], 2 + np.argsort(error[2:4]), [4]])  # Ω and OPEFO may be in either order
    claimed = np.empty_like(error)
    claimed[order] = nearest_rising(error[order])
    told = ", ".join(f"{name} {value:.2g}" for name, value in zip(ESTIMATES, error, strict=True))
    return Outcome(
        x=np.arange(5, dtype=np.float64),
        x_title="estimate",
        names=ESTIMATES,
        predicted=claimed,
        measured=error,
        y_title="mean squared error of ΔH/η (nats²)",
        holds=holds,
        because=f"the errors are {told}; "
        + ("they are in the claimed order." if holds else "they are not in the claimed order."),
    )


METRICS = ("error", "Pearson", "Spearman")


@trial("omega-or-cov", SPREAD_OF_STATES, LOG_ETA)
def omega_or_cov(spread: float, log_eta: float) -> Outcome:
    """Gain of Ω over Cov as an estimate of ΔH, over the tokens of a rollout in noisy: the share of the error that is
    saved, and the gain in correlation. The claim is that no gain is below 0."""
    found, truth, share = estimates(SMALL, spread, 10**log_eta)
    true_ranks = ranks_of(truth, share)
    score = {}
    for name in ("STEER", "Cov"):
        error = (share * (found[name] - truth) ** 2).sum(-1).mean()
        pearson = weighted_pearson(found[name], truth, share).mean()
        spearman = weighted_pearson(ranks_of(found[name], share), true_ranks, share).mean()
        score[name] = np.array([float(error), float(pearson), float(spearman)])
    omega, cov = score["STEER"], score["Cov"]
    gain = omega - cov
    gain[0] = 1 - omega[0] / cov[0]
    worse = [name for name, value in zip(METRICS, gain, strict=True) if value <= 0]
    told = ", ".join(f"{name} {a:.2f} and {b:.2f}" for name, a, b in zip(METRICS, omega, cov, strict=True))
    return Outcome(
        x=np.arange(3, dtype=np.float64),
        x_title="measure",
        names=METRICS,
        predicted=np.maximum(gain, 0),
        measured=gain,
        y_title="gain of Ω over Cov",
        holds=not worse,
        because=f"Ω and Cov have {told}; "
        + (f"Cov is not worse by {' and '.join(worse)}." if worse else "Ω is better by all three."),
    )
