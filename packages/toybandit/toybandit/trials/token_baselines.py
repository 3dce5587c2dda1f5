"""Baselines of each token: the claimed one beside that of least variance, and the step that a group makes of it."""

import torch

from ..claims.token_baselines import (
    LENGTHS,
    ROUNDING,
    energy,
    excess,
    groups_of,
    least,
    of_the_others,
    own_energy,
    step,
    tree,
    weighted,
    with_itself,
)
from ..trial import Outcome, Parameter, trial
from .first_order import STD

POLICIES = 12
SUMMED, ALONE = "summed up to the token", "of the token alone"


@trial(
    "token-baseline",
    Parameter(
        key="weight",
        label="Weight of a reward",
        default=SUMMED,
        options=(SUMMED, ALONE),
        help="Squared norm of ∇log π in the logits: of all tokens so far, as claimed, or of the token alone.",
    ),
    Parameter(
        key="length",
        label="Tokens of a response",
        symbol="L",
        default=3,
        low=min(LENGTHS),
        high=max(LENGTHS),
        step=1,
        help="All responses of this length are enumerated.",
    ),
    STD,
)
def token_baseline(weight: str, length: int, std: float) -> Outcome:
    """Baseline at each place of the responses of 12 random policies, beside the baseline of least gradient variance."""
    drawn = tree(POLICIES, length, std)
    claimed = weighted(drawn, energy(drawn) if weight == SUMMED else own_energy(drawn))
    above = excess(drawn, claimed)
    return Outcome(
        x=(torch.arange(POLICIES)[:, None] + torch.arange(length) / length).double().flatten().numpy(),
        x_title="policy, and within it the place of the token",
        predicted=claimed.flatten().numpy(),
        measured=least(drawn).flatten().numpy(),
        y_title="baseline B_t",
        points=True,
        holds=float(above.max()) < ROUNDING,
        because=f"its variance is {float(above.median()):.2%} above the least one in the median policy, and "
        f"{float(above.max()):.2%} at most.",
    )


@trial(
    "token-group",
    Parameter(
        key="own",
        label="The response itself counts",
        default=True,
        help="Each response is part of the baseline that is subtracted from its own reward.",
    ),
    Parameter(key="size", label="Group", symbol="n", default=3, low=2, high=4, step=1, help="Responses to a prompt."),
    STD,
)
def token_group(own: bool, size: int, std: float) -> Outcome:
    """Expected step of a group's mean gradient in every logit, beside the true gradient, for responses of two
    tokens."""
    drawn = tree(1, 2, std)
    members, chance = groups_of(drawn, size)
    taken = step(drawn, (with_itself if own else of_the_others)(drawn, members), members, chance)
    aside = float(taken.aside)
    return Outcome(
        x=torch.arange(taken.true.shape[-1]).double().numpy(),
        x_title="logit",
        predicted=taken.true[0].numpy(),
        measured=taken.expected[0].numpy(),
        y_title="step, in the scale of ∇E[R]",
        points=True,
        holds=aside < ROUNDING,
        because=f"{aside:.2%} of the squared step is aside of the gradient.",
    )
