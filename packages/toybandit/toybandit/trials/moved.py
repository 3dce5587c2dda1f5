"""Formulas of a state's entropy change by what moves in a step: a token's own logit, or every logit of the softmax."""

import numpy as np
import torch

from ..claims import assumption_1, responses
from ..claims import omega_remainder as remainder
from ..claims.ensembles import STEPS, median_order, random_logits
from ..claims.ensembles import entropy_change as measured_change
from ..claims.registry import Effort
from ..trial import Outcome, Parameter, trial
from .first_order import ARMS, STD
from .tokens import MOVES, OWN

EFFORT = Effort(instances=24, runs=1, states=1, rollouts=1)
OMEGA, BRACKET = "Ω, equation 8", "bracket of a token"


@trial(
    "omega",
    Parameter(
        key="formula",
        label="Formula",
        default=OMEGA,
        options=(OMEGA, BRACKET),
        help="Ω keeps the factor p that a step brings. The bracket, which is computed for a token, lacks it.",
    ),
    MOVES,
)
def omega_order(formula: str, moves: str) -> Outcome:
    """A GRPO update of all actions of 24 random policies with π_old other than π, and the claimed change of entropy.
    The picture shows one policy; the order is the median."""
    case = assumption_1.weights_and_policies(EFFORT)
    step = (assumption_1.own_step if moves == OWN else assumption_1.softmax_step)(*case)
    flow = (assumption_1.omega if formula == OMEGA else assumption_1.implemented)(*case)
    order = median_order(case[0], step, flow)
    x = torch.linspace(0, float(STEPS[0]), 41, dtype=torch.float64)
    holds = assumption_1.second_order(order)
    return Outcome(
        x=x.numpy(),
        x_title="step size η",
        predicted=(x * flow[0]).numpy(),
        measured=measured_change(case[0][:1].expand(len(x), -1), x.unsqueeze(-1) * step[:1]).numpy(),
        y_title="change of entropy ΔH (nats)",
        holds=holds,
        because=f"the error vanishes like η to the power {order:.2f}; a complete first-order formula has order 2.",
    )


@trial(
    "state-change",
    Parameter(
        key="formula",
        label="Formula",
        default="equation 6",
        options=tuple(assumption_1.STATE_FORMULAS),
        help="Equation 6 is OPEFO's, an expectation over the actions. own logit: the derivation's, with p for 1 − p. "
        "exact: the whole first order.",
    ),
)
def state_change(formula: str) -> Outcome:
    """Expected on-policy updates of 24 random policies: the measured change of entropy against the formula's."""
    estimate, truth = assumption_1.state_changes(EFFORT)
    found = estimate[formula]
    error = assumption_1.relative_error(found, truth["whole gradient"])
    return Outcome(
        x=np.arange(len(found), dtype=np.float64),
        x_title="policy",
        predicted=found.numpy(),
        measured=truth["whole gradient"].numpy(),
        y_title="change of entropy per step ΔH/η (nats)",
        holds=error < 1,
        because=f"the squared error is {error:.2g} of the squared change; predicting no change has 1.",
        points=True,
    )


@trial(
    "responses",
    Parameter(
        key="length",
        label="Tokens of a response",
        symbol="L",
        default=1,
        low=1,
        high=4,
        step=1,
        help="Every token has its own table of logits, as in a language model.",
    ),
)
def response_covariance(length: int) -> Outcome:
    """The fall of the entropy of 24 random policies against the best multiple of equation 7's covariance."""
    found = responses.responses(EFFORT, length)
    truth, equation, plain = responses.fall(found), responses.covariance(found, 1), responses.covariance(found, 0)
    ours, null = responses.unexplained(equation, truth), responses.unexplained(plain, truth)
    return Outcome(
        x=np.arange(len(truth), dtype=np.float64),
        x_title="policy",
        predicted=(equation * (equation @ truth) / (equation @ equation)).numpy(),
        measured=truth.numpy(),
        y_title="fall of entropy per step −ΔH/η (nats)",
        holds=ours < null,
        because=f"equation 7 leaves {ours:.2f} of the fall unexplained, the covariance without π(y) {null:.2f}.",
        points=True,
    )


@trial(
    "omega-remainder",
    MOVES,
    ARMS,
    STD,
)
def omega_remainder(moves: str, arms: int, std: float) -> Outcome:
    """Remainder of Ω when the likeliest action of a random policy is rewarded, relative to the squared size of the
    update, by that size. The claim is a constant upper limit."""
    step = remainder.own_step if moves == OWN else remainder.whole_step
    logits = random_logits(EFFORT.instances, arms, std, "trial policy")
    action, sizes = logits.argmax(-1), np.logspace(-3, 0.5, 29)
    left = [
        measured_change(logits, step(logits, action, x)) - remainder.omega(logits, action, x) for x in sizes.tolist()
    ]
    ratio = torch.stack(left).abs().amax(-1).numpy() / sizes**2
    return Outcome(
        x=sizes,
        x_title="size of the update η·A·r",
        predicted=np.full_like(sizes, remainder.CONSTANT),
        measured=ratio,
        y_title="|ΔH − Ω| / (η·A·r)², largest of the policies",
        holds=bool(ratio.max() <= remainder.CONSTANT),
        because=f"the largest ratio is {ratio.max():.2f}, at a size of {sizes[ratio.argmax()]:.3f}; the bound is "
        f"{remainder.CONSTANT:g}.",
        log_x=True,
        log_y=True,
    )
