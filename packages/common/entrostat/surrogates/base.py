"""What all surrogates share: a loss for each token, which tokens clipping stops, and how tokens are averaged.

For A > 0 the PPO term −min(rA, clip(r)A) is −A·min(r, 1+εh); for A < 0 it is −A·max(r, 1−εl), and dual clip caps that
r at c. So one clamp of the ratio, with bounds by the sign of A, is the whole of it.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..aggregation import AGGREGATIONS, DENOMINATORS, token_scale
from ..controller import Context, Controller, column
from ..plan import Plan, Slice, beyond_bounds, importance_ratio
from ..registry import register
from ..tokens import Tokens


def bounded(ratio: Tensor, s: Slice) -> Tensor:
    """The ratio within the bounds that the sign of A gives it."""
    positive = s.direction > 0
    lower = torch.where(positive, 0.0, s.clip_low)
    return ratio.clamp(lower, torch.where(positive, s.clip_high, s.dual_clip))


def clipped_ratio_loss(logp: Tensor, s: Slice) -> Tensor:
    """−A·clamp(r) of each token (PPO with dual clip)."""
    assert s.old_logp is not None
    return -s.advantage * bounded(importance_ratio(logp, s.old_logp), s)


def log_likelihood_loss(logp: Tensor, s: Slice) -> Tensor:
    """−A·log π of each token."""
    return -s.advantage * logp


def never(logp: Tensor, s: Slice) -> Tensor:
    """The mask of a surrogate whose clipping takes no token's gradient."""
    return torch.zeros_like(logp, dtype=torch.bool)


@dataclass(kw_only=True)
class SurrogateController(Controller):
    """The part of a chain that decides the loss. Hyperparameters shared by all surrogates."""

    aggregation: str = "token-mean"
    """token-mean, seq-mean-token-mean, seq-mean-token-sum or fixed."""
    denominator: str = "all"
    """Whether tokens dropped by a controller are counted: all or kept."""
    constant: float = 1.0
    """The divisor of `fixed` (Dr. GRPO)."""

    across_sequences: ClassVar[bool] = False
    """Whether the loss of a token depends on its sequence, so that slices must hold whole sequences."""

    def __post_init__(self) -> None:
        self._require(self.aggregation in AGGREGATIONS, f"aggregation must be one of {', '.join(AGGREGATIONS)}")
        self._require(self.denominator in DENOMINATORS, f"denominator must be one of {', '.join(DENOMINATORS)}")
        self._require(self.constant > 0, "constant must be positive")

    @property
    def needs(self) -> frozenset[str]:
        sequences = self.across_sequences or self.aggregation.startswith("seq")
        return frozenset({"old_logp"}) | (frozenset({"seq_id"}) if sequences else frozenset())

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        """(lower bound for A < 0, upper bound for A > 0, upper bound for A < 0) of the importance ratio."""
        return 0.0, inf, inf

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        """Loss of each token of a slice, (..., n)."""
        return clipped_ratio_loss(logp, s)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        """Mask (..., n) of the tokens that clipping leaves without policy gradient."""
        return beyond_bounds(logp, s)

    def start(self, tokens: Tokens) -> Plan:
        """The plan before any controller has spoken."""
        advantage = tokens.advantage
        low, high, dual = (column(bound, advantage) for bound in self.ratio_bounds())
        return Plan(
            surrogate=self.loss,
            stopped=self.stopped,
            advantage=advantage,
            old_logp=tokens.old_logp,
            weight=torch.ones_like(advantage),
            keep=torch.ones_like(advantage, dtype=torch.bool),
            clip_low=low,
            clip_high=high,
            dual_clip=dual,
            scale=torch.ones_like(advantage[..., :1]),
        )

    def finish(self, plan: Plan, context: Context) -> Plan:
        """Fix the share of each token once it is known which are kept."""
        scale = token_scale(
            context.tokens, plan.keep, context.reduce, self.aggregation, self.denominator, self.constant
        )
        return replace(plan, scale=scale)


@register("reinforce")
@dataclass(kw_only=True)
class Reinforce(SurrogateController):
    """−A·log π: the strictly on-policy policy gradient.

    Nothing corrects for samples of an older policy: reusing a rollout biases it.
    """

    source: ClassVar = "Williams 1992"
    quadrants: ClassVar = ()
    strictly_on_policy: ClassVar = True

    @property
    def needs(self) -> frozenset[str]:
        return super().needs - {"old_logp"}

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        return log_likelihood_loss(logp, s)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return never(logp, s)
