"""Clip bounds that are wider for unlikely tokens, by a plan, against a fixed clip."""

from dataclasses import replace

from ..claims.runs import entropies
from ..trial import Outcome, Parameter, trial
from .rules import ENV, PASSES, ROLLOUTS, SIZE, ends_above

ID, DID, UPPER, LOWER = "increase, decrease", "decrease, increase, decrease", "upper bound wide", "lower bound wide"
VARIANTS = {ID: "id", DID: "did", UPPER: "wide_upper", LOWER: "wide_lower"}


@trial(
    "flexible-clip",
    Parameter(
        key="variant",
        label="Plan of the bounds",
        default=UPPER,
        options=tuple(VARIANTS),
        help="A wide upper bound should raise the entropy, a wide lower bound should lower it. The first two plans "
        "move from one to the other in the course of the run.",
    ),
    replace(PASSES, default=8),
    ROLLOUTS,
    ENV,
)
def flexible_clip(variant: str, passes: int, rollouts: int, env: str) -> Outcome:
    """The mean entropy of the same runs under moving bounds and under a fixed clip at .8 and 1.2."""
    settings = {"env": env, "passes": passes, "rollouts": rollouts}
    args = {"variant": VARIANTS[variant]}
    moved = entropies(SIZE, controller="flexible_clip", controller_args=args, **settings).mean(0)
    fixed = entropies(SIZE, controller="grpo", **settings).mean(0)
    if variant == LOWER:
        return ends_above(fixed, moved, "the wide lower bound")
    return ends_above(moved, fixed, "the fixed clip")
