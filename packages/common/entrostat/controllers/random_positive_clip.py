"""Dropping a few random tokens with positive advantage."""

from dataclasses import dataclass
from typing import ClassVar

from ..controller import Context, Controller
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import Share
from .covariance import share_of_tokens


@register("random_positive_clip")
@dataclass(kw_only=True)
class RandomPositiveClip(Controller):
    """Drop max(int(k·N), 1) tokens drawn uniformly among those with A > 0 (Rand-Pos-Clip).

    Control experiment for Clip-Cov: the same number of tokens, regardless of their covariance.
    """

    k: Share = 2e-4
    """Share of the mini-batch's tokens to drop."""
    source: ClassVar = "Revisiting Entropy, appendix E.2"
    quadrants: ClassVar = ("I", "II")

    def transform(self, plan: Plan, context: Context) -> Plan:
        order = context.uniform(self.name, among=context.tokens.advantage > 0)
        drawn = context.reduce.top_k(order, share_of_tokens(self.k, context.size))
        return plan.drop(drawn, **{"random_positive_clip/dropped": context.share(drawn)})
