"""Base of all surrogates: loss of each token, tokens that clipping stops, and average over tokens.

For A > 0 the PPO term −min(rA, clip(r)A) is −A·min(r, 1+εh); for A < 0 it is −A·max(r, 1−εl), and dual clip limits that
r to at most c. So a single clamp of the ratio, with bounds that depend on the sign of A, covers all cases.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller
from ..numbers.kl import LOG_RATIO_LIMIT, log_ratio
from ..numbers.per_run import column, constant
from ..plan import Plan, Slice, beyond_bounds, importance_ratio
from ..registry import register
from ..tokens import Tokens
from .aggregation import Aggregation, Denominator, token_scale


def bounded(ratio: Tensor, s: Slice) -> Tensor:
    """Return the ratio clamped to the bounds for the sign of A."""
    positive = s.direction > 0
    lower = torch.where(positive, 0.0, s.clip_low)
    return ratio.clamp(lower, torch.where(positive, s.clip_high, inf if s.dual_clip is None else s.dual_clip))


def never(logp: Tensor, s: Slice) -> Tensor:
    """Return the mask of stopped tokens for a surrogate that stops none: all False."""
    return torch.zeros_like(logp, dtype=torch.bool)


LEAST_LOGP = -100.0
"""Lower limit of log π_old in a penalty (nats). No token is drawn at less: an engine that says −∞ is at fault."""


def held_near_rollout(plan: Plan, tokens: Tokens, coef: Tensor) -> Plan:
    """Return the plan with (coef/2)·log²r added to the loss of each token, r against π_old; coef: (..., 1)."""
    return plan.add_ref_kl(coef, tokens.get("old_logp").clamp(min=LEAST_LOGP), "k2")


@dataclass(kw_only=True)
class SurrogateController(Controller):
    """Part of a chain that decides the loss, with the hyperparameters that all surrogates share."""

    aggregation: Aggregation = "token-mean"
    """Average over tokens: token-mean, seq-mean-token-mean, seq-mean-token-sum or fixed."""
    denominator: Denominator = "all"
    """Tokens counted in the average: all, or only those kept by the controllers."""
    constant: Annotated[float, "(0, inf)"] = 1.0
    """Divisor of `fixed` (Dr. GRPO)."""

    across_sequences: ClassVar[bool] = False
    """True if the loss of a token depends on its sequence, so that slices must hold whole sequences."""

    @property
    def needs(self) -> frozenset[str]:
        sequences = self.across_sequences or self.aggregation.startswith("seq")
        return frozenset({"old_logp"}) | (frozenset({"seq_id"}) if sequences else frozenset())

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        """Return bounds of the importance ratio: (lower for A < 0, upper for A > 0, upper for A < 0)."""
        return 0.0, inf, inf

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        """Return the loss of each token of a slice, (..., n)."""
        raise TypeError(f"surrogate {self.name!r} has no loss")

    def slope(self, logp: Tensor, s: Slice) -> Tensor:
        """Return the derivative of each token's loss in its log π, (..., n): autograd, or a subclass's closed form."""
        with torch.inference_mode(False), torch.enable_grad():
            leaf = (logp.clone() if logp.is_inference() else logp.detach()).requires_grad_()
            return torch.autograd.grad(self.loss(leaf, s.differentiable()).sum(), leaf)[0]

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        """Return a mask (..., n) of the tokens whose policy gradient clipping removes."""
        return beyond_bounds(logp, s)

    def start(self, tokens: Tokens) -> Plan:
        """Return the plan before any controller changes it."""
        advantage = tokens.advantage
        low, high, dual = self.ratio_bounds()
        one = column(1.0, advantage)  # one element for a value that all tokens share
        return Plan(
            surrogate=self.loss,
            slope=self.slope,
            stopped=self.stopped,
            advantage=advantage,
            old_logp=tokens.old_logp,
            weight=one,
            keep=constant(True, torch.bool, advantage.device),
            clip_low=column(low, advantage),
            clip_high=column(high, advantage),
            dual_clip=None if isinstance(dual, float) and dual == inf else column(dual, advantage),
            scale=one,
        )

    def finish(self, plan: Plan, context: Context) -> Plan:
        """Set the scale of each token, which depends on the tokens that are kept."""
        scale = token_scale(
            context.tokens, plan.keep, context.reduce, self.aggregation, self.denominator, self.constant
        )
        return plan.changed(scale=scale)


class ClippedRatio(SurrogateController):
    """−A·clamp(r): PPO with dual clip, for any bounds."""

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        return -s.advantage * bounded(importance_ratio(logp, s.old_logp), s)

    def slope(self, logp: Tensor, s: Slice) -> Tensor:
        """Return −A·r; 0 if the ratio is beyond its bound, that is r·A > clip(r)·A, or the log-ratio beyond ±20."""
        assert s.old_logp is not None
        difference, advantage = log_ratio(logp, s.old_logp), s.advantage
        ratio = difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp_()
        objective = ratio * advantage
        excess = objective - ratio.clamp(s.clip_low, s.clip_high).mul_(advantage)
        stopped = excess.clamp_(min=0).sign_()  # 1 or 0: arithmetic is faster than masks
        if s.dual_clip is not None:
            stopped[(advantage < 0) & (ratio > s.dual_clip)] = 1
        return stopped.sub_(1).mul_(objective).mul_(difference.abs_() <= LOG_RATIO_LIMIT)


@register("reinforce")
@dataclass(kw_only=True)
class Reinforce(SurrogateController):
    """−A·log π: the strictly on-policy policy gradient.

    Does not correct for samples of an older policy, so reusing a rollout biases the gradient.
    """

    source: ClassVar = "Williams 1992"
    quadrants: ClassVar = ()
    strictly_on_policy: ClassVar = True

    @property
    def needs(self) -> frozenset[str]:
        return super().needs - {"old_logp"}

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        return -s.advantage * logp

    def slope(self, logp: Tensor, s: Slice) -> Tensor:
        return -s.advantage.expand(logp.shape)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return never(logp, s)
