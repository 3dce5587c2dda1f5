"""Tokens that a mask by divergence stops, and the reward that comes of it, against the ratio clip."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..claims.runs import trajectory
from ..claims.trust_region import LIKELY, MASKS, RULES, UNLIKELY, StopProbe
from ..instruments import at_hand
from ..trajectory import Array
from ..trial import Outcome, Parameter, trial
from .rules import ENV, LR, PASSES, ROLLOUTS, SIZE

MASK = Parameter(
    key="mask",
    label="Mask by divergence",
    default="DPPO-TV",
    options=tuple(MASKS),
    help="DPPO-TV stops a token when its probability has changed by .15, DPPO-KL when the divergence is .05 nats.",
)
SHORT = replace(ROLLOUTS, default=20)


def stopped(controller: str, **config: Any) -> Array:
    """Return the shares of unlikely and of likely tokens that are stopped, (2,)."""
    with at_hand(stop_probe=StopProbe):
        found = trajectory(SIZE, controller=f"{controller}+stop_probe", **config).metrics
    return np.array([found[f"{x} stopped"].sum() / max(found[f"{x} tokens"].sum(), 1) for x in ("unlikely", "likely")])


@trial("mask", MASK, LR, replace(PASSES, default=8), SHORT, ENV)
def mask(mask: str, lr: float, passes: int, rollouts: int, env: str) -> Outcome:
    """Shares of unlikely and of likely tokens that DPPO stops. The prediction is below GRPO's share for unlikely tokens
    and above it for likely ones."""
    settings = {"env": env, "lr": lr, "passes": passes, "rollouts": rollouts}
    measured, clip = stopped(MASKS[mask], **settings), stopped("grpo", **settings)
    return Outcome(
        x=np.arange(2, dtype=np.float64),
        x_title="tokens",
        names=(f"π_old ≤ {UNLIKELY:g}", f"π_old > {LIKELY:g}"),
        predicted=np.array([min(measured[0], clip[0]), max(measured[1], clip[1])]),
        measured=measured,
        y_title="share of the tokens that is stopped",
        holds=bool(measured[0] < clip[0] and measured[1] > clip[1]),
        because=f"{mask} stops {measured[0]:.2%} of the unlikely and {measured[1]:.2%} of the likely tokens, the ratio "
        f"clip {clip[0]:.2%} and {clip[1]:.2%}.",
    )


@trial(
    "learning",
    MASK,
    Parameter(
        key="other",
        label="Compared with",
        default="GRPO",
        options=("GRPO", "no mask"),
        help="GRPO clips the ratio at .8 and 1.2. no mask: nothing is stopped, which collapses at a high η.",
    ),
    LR,
    replace(PASSES, default=8),
    SHORT,
    ENV,
)
def learning(mask: str, other: str, lr: float, passes: int, rollouts: int, env: str) -> Outcome:
    """Expected reward under DPPO and under another rule; DPPO's should have the higher mean over the run."""
    settings = {"env": env, "lr": lr, "passes": passes, "rollouts": rollouts}
    measured, against = (trajectory(SIZE, **RULES[name], **settings).reward.mean(0) for name in (mask, other))
    return Outcome(
        x=np.arange(rollouts, dtype=np.float64),
        x_title="rollout",
        predicted=np.maximum(measured, against),
        measured=measured,
        y_title="expected reward R",
        holds=bool(measured.mean() > against.mean()),
        because=f"the mean reward of the run is {measured.mean():.4f}, and {against.mean():.4f} under {other}.",
    )
