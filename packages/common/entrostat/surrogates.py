"""Surrogates: the elementwise loss of a token, given its plan, and how tokens are averaged.

For A > 0 the PPO term −min(rA, clip(r)A) is −A·min(r, 1+εh); for A < 0 it is −A·max(r, 1−εl), and dual clip caps that
r at c. So one clamp of the ratio, with bounds by the sign of A, is the whole of it.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor

from .aggregation import AGGREGATIONS, DENOMINATORS, token_scale
from .controller import Context, Controller, column
from .plan import Plan, Slice, importance_ratio
from .registry import register
from .tokens import Tokens


def clipped_ratio_loss(logp: Tensor, s: Slice) -> Tensor:
    """−A·clamp(r) of each token (PPO with dual clip)."""
    assert s.old_logp is not None
    positive = s.advantage > 0
    lower = torch.where(positive, 0.0, s.clip_low)
    upper = torch.where(positive, s.clip_high, s.dual_clip)
    return -s.advantage * importance_ratio(logp, s.old_logp).clamp(lower, upper)


def log_likelihood_loss(logp: Tensor, s: Slice) -> Tensor:
    """−A·log π of each token."""
    return -s.advantage * logp


@dataclass(kw_only=True)
class SurrogateController(Controller):
    """The part of a chain that decides the loss. Hyperparameters shared by all surrogates."""

    aggregation: str = "token-mean"
    """token-mean, seq-mean-token-mean, seq-mean-token-sum or fixed."""
    denominator: str = "all"
    """Whether tokens dropped by a controller are counted: all or kept."""
    constant: float = 1.0
    """The divisor of `fixed` (Dr. GRPO)."""

    loss: ClassVar[Any] = staticmethod(clipped_ratio_loss)

    def __post_init__(self) -> None:
        self._require(self.aggregation in AGGREGATIONS, f"aggregation must be one of {', '.join(AGGREGATIONS)}")
        self._require(self.denominator in DENOMINATORS, f"denominator must be one of {', '.join(DENOMINATORS)}")
        self._require(self.constant > 0, "constant must be positive")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"old_logp"}) | (frozenset({"seq_id"}) if self.aggregation.startswith("seq") else frozenset())

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        """(lower bound for A < 0, upper bound for A > 0, upper bound for A < 0) of the importance ratio."""
        return 0.0, inf, inf

    def start(self, tokens: Tokens) -> Plan:
        """The plan before any controller has spoken."""
        advantage = tokens.advantage
        low, high, dual = (column(bound, advantage) for bound in self.ratio_bounds())
        return Plan(
            surrogate=self.loss,
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


@register("ppo")
@dataclass(kw_only=True)
class PPO(SurrogateController):
    """max(−rA, −clip(r, 1−eps_low, 1+eps_high)·A); for A < 0 at most −dual_clip·A. PPO; GRPO's objective.

    The papers' objectives have no dual clip; their released scripts use c = 10.
    """

    eps_low: float = 0.2
    eps_high: float = 0.2
    dual_clip: float = inf
    presets: ClassVar = {"paper": {}, "released": {"dual_clip": 10.0}}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.eps_low) >= 0, "eps_low must not be negative")
        self._require(torch.as_tensor(self.eps_high) >= 0, "eps_high must not be negative")
        self._require(torch.as_tensor(self.dual_clip) > 1, "dual_clip must be above 1")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, self.dual_clip


@register("clip_higher")
@dataclass(kw_only=True)
class ClipHigher(PPO):
    """PPO with clip 0.2 / 0.28 (DAPO)."""

    eps_high: float = 0.28


@register("clip_lower")
@dataclass(kw_only=True)
class ClipLower(PPO):
    """PPO with clip 0.28 / 0.2 (Revisiting Entropy, figure 3)."""

    eps_low: float = 0.28


@register("clip_tighter")
@dataclass(kw_only=True)
class ClipTighter(PPO):
    """PPO with clip 0.12 / 0.2 (Revisiting Entropy, figure 3)."""

    eps_low: float = 0.12


@register("clip_free")
@dataclass(kw_only=True)
class ClipFree(SurrogateController):
    """−rA with no clip and no dual clip (Revisiting Entropy, figure 3)."""


@register("reinforce")
@dataclass(kw_only=True)
class Reinforce(SurrogateController):
    """−A·log π: the strictly on-policy policy gradient."""

    loss: ClassVar[Any] = staticmethod(log_likelihood_loss)

    @property
    def needs(self) -> frozenset[str]:
        return super().needs - {"old_logp"}
