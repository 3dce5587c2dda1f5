"""First-order entropy change of a whole distribution: lemma 1, theorems 1 and 2, and flows that add."""

import numpy as np
import torch
from torch import Tensor

from entrostat import policy_stats
from entrostat.entropy_change import lemma1, natural_policy_gradient, policy_gradient

from ..claims.ensembles import STEPS, entropy_change, median_order, random_logits, random_vector
from ..claims.first_order import (
    centred,
    expected_gradient,
    natural_gradient,
    remainder_ratio,
    second_order,
    two_level,
)
from ..claims.tokens import every_token, summed_step
from ..trial import Outcome, Parameter, trial

INSTANCES = 24
"""Number of random policies; the order of the error is their median."""
ANY, PG, NPG, TOKENS = "any direction", "policy gradient", "natural policy gradient", "sampled tokens"
ARMS = Parameter(
    key="arms",
    label="Arms",
    symbol="K",
    default=16,
    low=2,
    high=64,
    step=1,
    help="Actions of the policy.",
)
STD = Parameter(
    key="std",
    label="Spread of the logits",
    symbol="σ",
    default=2.0,
    low=0.1,
    high=5.0,
    step=0.1,
    help="Standard deviation of the random logits: a larger one makes the policy more concentrated.",
)


def step_and_formula(kind: str, logits: Tensor, shift: float, baseline: bool) -> tuple[Tensor, Tensor]:
    """Return the direction of the step, (instances, K), and the claim's first-order ΔH for it, (instances,).

    baseline: subtract the mean of the advantage in the formula of the policy gradient.
    """
    logp, direction = policy_stats(logits).logp, random_vector(INSTANCES, logits.shape[-1], "trial direction")
    if kind == ANY:
        return direction + shift, lemma1(logp, direction + shift)
    if kind == TOKENS:
        weight = direction + shift
        return summed_step(logits, weight), every_token(logits, weight)[0].sum(-1)
    advantage = centred(logp, direction) + shift
    if kind == PG:
        told = centred(logp, advantage) if baseline else advantage
        return expected_gradient(logp, advantage), policy_gradient(logp, told)
    return natural_gradient(logp, advantage), natural_policy_gradient(logp, advantage)


@trial(
    "first-order",
    Parameter(
        key="rule",
        label="Step",
        default=ANY,
        options=(ANY, PG, NPG, TOKENS),
        help="Direction of the change of the logits. Sampled tokens: every arm is drawn once, with a random weight.",
    ),
    Parameter(
        key="shift",
        label="Mean of the advantage",
        symbol="E[A]",
        default=0.0,
        low=-2.0,
        high=2.0,
        step=0.1,
        help="Offset of an advantage that is centred under the policy; the same for every arm.",
    ),
    Parameter(
        key="baseline",
        label="Baseline in the formula",
        default=False,
        help="On: the formula of the policy gradient has A − E[A] in place of A, as its step has anyway.",
    ),
    Parameter(
        key="eta",
        label="Largest step",
        symbol="η",
        default=0.1,
        low=0.1,
        high=20.0,
        step=0.1,
        help="The order of the error is measured over two decades of step sizes up to this one.",
    ),
    ARMS,
    STD,
)
def first_order(rule: str, shift: float, baseline: bool, eta: float, arms: int, std: float) -> Outcome:
    """The logits of a random policy are moved by η·d, and the change of entropy is compared with the formula's. The
    picture shows one policy; the order is the median over 24."""
    logits = random_logits(INSTANCES, arms, std, "trial policy")
    step, formula = step_and_formula(rule, logits, shift, baseline)
    scale = eta / float(STEPS[0])
    order = median_order(logits, scale * step, scale * formula)
    x = torch.linspace(0, eta, 41, dtype=torch.float64)
    measured = entropy_change(logits[:1].expand(len(x), -1), x.unsqueeze(-1) * step[:1])
    holds = second_order(order)
    told = "the whole first order is in the formula" if holds else "a complete first-order formula has order 2"
    return Outcome(
        x=x.numpy(),
        x_title="step size η",
        predicted=(x * formula[0]).numpy(),
        measured=measured.numpy(),
        y_title="change of entropy ΔH (nats)",
        holds=holds,
        because=f"up to η = {eta:g} the error vanishes like η to the power {order:.2f}; {told}.",
    )


@trial(
    "remainder",
    Parameter(
        key="arms",
        label="Arms",
        symbol="K",
        default="16",
        options=("2", "16", "64", "1000", "50000"),
        help="Actions of the policy.",
    ),
)
def remainder(arms: str) -> Outcome:
    """Mass m is spread evenly over all arms but one, which moves against them: the worst case found by searches."""
    logits, step = two_level(int(arms))
    ratio = remainder_ratio(logits, step)[0].numpy()
    worst = int(ratio.argmax())
    mass = 1 - policy_stats(logits).logp[:, 0].exp().numpy()
    return Outcome(
        x=mass,
        x_title="mass m on the evenly spread arms",
        predicted=np.ones_like(ratio),
        measured=ratio,
        y_title="remainder of lemma 1 / ‖Δz‖∞²",
        holds=bool(ratio.max() <= 1),
        because=f"the remainder is at most {ratio[worst]:.2f}·‖Δz‖∞², at m = {mass[worst]:.2f}; the bound is 1.",
    )
