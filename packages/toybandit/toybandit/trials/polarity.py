"""More weight on the tokens that raise the entropy, or on those that lower it."""

from dataclasses import replace

from ..claims.polarity import SIDES
from ..claims.runs import entropies
from ..trial import Outcome, Parameter, trial
from .quadrants import ENV
from .rules import ROLLOUTS, SIZE, ends_above


@trial(
    "polarity",
    Parameter(
        key="kind",
        label="Tokens with more weight",
        default="expanding",
        options=tuple(SIDES),
        help="By the sign of the token's exact entropy flow: expanding raise the entropy, contracting lower it.",
    ),
    Parameter(
        key="gamma",
        label="Change of the weights",
        symbol="γ",
        default=0.5,
        low=0.0,
        high=0.95,
        step=0.05,
        help="Weights are 1 + γ for these tokens and 1 − γ for the others.",
    ),
    ENV,
    replace(ROLLOUTS, default=20),
)
def polarity(kind: str, gamma: float, env: str, rollouts: int) -> Outcome:
    """The mean entropy of the same runs under PAPO's weights and under GRPO: the expanding side should end above."""
    settings = {"env": env, "rollouts": rollouts, "passes": 1 if env == "on" else 4}
    args = {"gamma": gamma}
    moved = entropies(SIZE, controller="papo", target=SIDES[kind], controller_args=args, **settings).mean(0)
    grpo = entropies(SIZE, **settings).mean(0)
    if kind == "expanding":
        return ends_above(moved, grpo, "GRPO")
    return ends_above(grpo, moved, "weights on contracting tokens")
