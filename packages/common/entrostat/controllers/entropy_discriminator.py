"""Clip_B and Clip_V: drop wrong tokens whose punishment would lower the entropy most."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .. import entropy_change
from ..controller import Context, Controller
from ..numbers.per_run import column
from ..numbers.reduce import LocalReduce
from ..plan import Plan, rounding
from ..registry import register
from ..settings.hyperparameters import NotNegative, Share
from .covariance import share_of_tokens


def mean_and_deviation(score: Tensor, reduce: LocalReduce) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (by N) of the scores (..., N) over the mini-batch, (..., 1) each.

    The deviation is infinite where the scores are equal within rounding, so that none is far from the mean.
    """
    mean = reduce.mean(score).unsqueeze(-1)
    std = reduce.mean((score - mean) ** 2).sqrt().unsqueeze(-1)
    std = torch.where(std > rounding(score) * mean.hypot(std), std, torch.inf)
    return mean.to(score.dtype), std.to(score.dtype)


@register("clip_b")
@dataclass(kw_only=True)
class ClipB(Controller):
    """Drop the tokens with A < 0 whose S is more than mu·σ below the mean of S, with S = p(lp + H).

    S is the fall of the entropy by a unit rise of the token's logit; mean and σ are over the mini-batch. Punishing an
    unlikely token, of low S, lowers the entropy. With denominator=kept this is Trinity-RFT's ClipBAdvantageFn, whose
    p and H are those before the first update on a rollout.
    """

    mu: NotNegative = 2.5
    """Distance from the mean, in standard deviations, beyond which a token is dropped."""
    signs: Literal["negative", "both"] = "negative"
    """Tokens that can be dropped: negative, those with A < 0, as released, or both, also those with A > 0 whose S is as
    far above the mean, which is ours."""
    source: ClassVar = "Wang et al. 2026 (arXiv 2602.03392); Trinity-RFT"
    quadrants: ClassVar = ("I", "III")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens = context.tokens
        score = entropy_change.discriminator(tokens.get("logp"), tokens.get("entropy")).expand(tokens.advantage.shape)
        mean, std = mean_and_deviation(score, context.reduce)
        limit = column(self.mu, score) * std
        dropped = (tokens.advantage < 0) & (score - mean < -limit)
        if self.signs == "both":
            dropped |= (tokens.advantage > 0) & (score - mean > limit)
        return plan.drop(dropped, **{"clip_b/dropped": context.share(dropped)})


@register("clip_v")
@dataclass(kw_only=True)
class ClipV(Controller):
    """Drop tokens with A < 0 whose S is more than mu·σ below its mean under the token's own policy, Σ_v p_v·S_v.

    S = p(lp + H), and −A times the difference is the exact entropy change of the token by its own gradient step; σ is
    that of the difference over the mini-batch. Of the candidates, the max(int(k·N), 1) with the largest difference are
    dropped. With denominator=kept this is Trinity-RFT's ClipVAdvantageFn, whose p and H are those before the first
    update on a rollout.
    """

    mu: NotNegative = 8.5
    """Distance from the mean under the policy, in standard deviations, beyond which a token is a candidate."""
    k: Share = 1e-4
    """Largest share of the mini-batch's tokens to drop."""
    source: ClassVar = "Wang et al. 2026 (arXiv 2602.03392); Trinity-RFT"
    quadrants: ClassVar = ("III",)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy", "s2", "s2l"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens = context.tokens
        logp, entropy, s2, s2l = (tokens.get(name) for name in ("logp", "entropy", "s2", "s2l"))
        gap = entropy_change.exact(logp, entropy, s2, s2l, torch.ones_like(tokens.advantage))  # Σ p·S − S
        _, std = mean_and_deviation(gap, context.reduce)
        far = (tokens.advantage < 0) & (gap > column(self.mu, gap) * std)
        score = torch.where(far, gap, -torch.inf)
        dropped = context.reduce.top_k(
            score, share_of_tokens(self.k, context.size), tie=lambda: context.uniform(self.name)
        )
        return plan.drop(dropped, **{"clip_v/dropped": context.share(dropped)})
