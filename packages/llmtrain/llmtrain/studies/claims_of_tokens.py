"""Claims on the entropy change by one token's update: quadrants, exact flow, first order in shared weights."""

from collections.abc import Callable

import numpy as np

from entrostat.diagnostics import QUADRANTS

from .claim_registry import TOKENS, Array, Change, Finding, Margin, Measured, TokenSteps, claim, faults, judged, told
from .probe import LIKELY, NUMERALS, RAISES, UNLIKELY, quality

EXPLAINED = 0.5
"""Largest error of the exact flow that counts as explained, as a share of the error of guessing zero."""
FIRST_ORDER = 0.05
"""Largest error of a whole first order, likewise: the rest is curvature, which a small step has little of."""


def each(change: Callable[[TokenSteps], TokenSteps]) -> Change:
    """Return the fault that changes the tokens of every seed."""
    return lambda measured: measured._replace(tokens=[change(one) for one in measured.tokens])


def as_claimed(tokens: TokenSteps) -> dict[str, float]:
    """Return the share of each quadrant's tokens whose update changes the entropy as claimed; NaN without tokens."""
    up, likely, unlikely = tokens.weight > 0, tokens.p > LIKELY, tokens.p <= UNLIKELY
    masks = dict(zip(QUADRANTS, (up & likely, up & unlikely, ~up & unlikely, ~up & likely), strict=True))
    right = {name: (tokens.change[mask] > 0) == RAISES[name] for name, mask in masks.items()}
    return {name: float(values.mean()) if len(values) else float("nan") for name, values in right.items()}


def unexplained(estimate: Array, change: Array) -> float:
    """Return the error of an estimate at its best step size above 0, as a share of the error of guessing zero."""
    scale = max(quality(estimate, change, 1.0).scale, 0.0)
    return float(((scale * estimate - change) ** 2).mean() / (change**2).mean())


@claim(
    "four-quadrants",
    needs=(TOKENS,),
    threshold="in each quadrant more than half of the tokens, updated alone, change their entropy as claimed: the "
    "paper states signs",
    null="a coin, .5",
    mutations=faults(
        {
            "the advantage had the other sign": each(lambda one: one._replace(weight=-one.weight)),
            "likely and unlikely were exchanged": each(lambda one: one._replace(p=1 - one.p)),
            "the measured change were the other way": each(lambda one: one._replace(change=-one.change)),
        }
    ),
)
def four_quadrants(measured: Measured) -> Finding:
    """Rewarding likely tokens and punishing unlikely ones lowers their entropy; the other two raise it. Here each token
    is updated alone, where the bandit masks or doubles a tenth of a quadrant over a run."""
    shares = [as_claimed(one) for one in measured.tokens]
    values = {name: np.array([one[name] for one in shares]) for name in QUADRANTS}
    return judged(
        "share as claimed: " + ", ".join(f"{NUMERALS[name]} {told(x)}" for name, x in values.items()),
        ".5",
        tuple(Margin(f"{NUMERALS[name]} {name}, share − .5", x - 0.5) for name, x in values.items()),
    )


@claim(
    "token-flow",
    needs=(TOKENS,),
    threshold=f"the exact flow leaves less than {EXPLAINED:.0%} of the error of guessing zero at its best step size, "
    "which is one for all tokens though shared weights give each its own; and less than the null does",
    null="the part of the sampled token's own logit, at its best step size",
    mutations=faults(
        {
            "the flow had the other sign": each(lambda one: one._replace(exact=-one.exact)),
            "the other logits were left out": each(lambda one: one._replace(exact=one.own)),
            "the flow were a constant": each(lambda one: one._replace(exact=np.ones_like(one.exact))),
        }
    ),
)
def token_flow(measured: Measured) -> Finding:
    """The exact flow of a tabular policy describes the entropy at the place of a token that is updated alone, although
    the model's weights are shared."""
    exact = np.array([unexplained(one.exact, one.change) for one in measured.tokens])
    own = np.array([unexplained(one.own, one.change) for one in measured.tokens])
    wrong = np.array([(one.exact * one.change < 0).mean() for one in measured.tokens])
    return judged(
        f"error left {told(exact)}, wrong sign {told(wrong)}",
        f"error left {told(own)}",
        (Margin(f"{EXPLAINED:g} − error left", EXPLAINED - exact), Margin("null's error − error left", own - exact)),
    )


@claim(
    "first-order-step",
    needs=(TOKENS,),
    threshold=f"the first order in all weights leaves less than {FIRST_ORDER:.0%} of the error of guessing zero, with "
    "the step itself and no step size fitted; and less than the null does",
    null="the exact flow of the token's own place, at its best step size: no other token changes",
    mutations=faults(
        {
            "the estimate had the other sign": each(lambda one: one._replace(first_order=-one.first_order)),
            "the estimate were a constant": each(
                lambda one: one._replace(first_order=np.full_like(one.total, one.total.mean()))
            ),
            "tokens did not share weights": each(lambda one: one._replace(first_order=one.change)),
        }
    ),
)
def first_order_step(measured: Measured) -> Finding:
    """One token's update changes the entropy of all tokens, and to first order by ⟨its step, ∇ΣH⟩. The bandit's
    own claim is shared-weights."""
    error = np.array([((x.first_order - x.total) ** 2).mean() / (x.total**2).mean() for x in measured.tokens])
    alone = np.array([unexplained(one.exact, one.total) for one in measured.tokens])
    return judged(
        f"error left {told(error, 4)}",
        f"error left {told(alone, 4)}",
        (Margin(f"{FIRST_ORDER:g} − error left", FIRST_ORDER - error), Margin("null's error − ours", alone - error)),
    )
