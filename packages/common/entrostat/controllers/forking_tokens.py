"""Learning from the uncertain tokens only."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..controller import Context, Controller
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import Number
from .covariance import share_of_tokens


@register("forking_tokens")
@dataclass(kw_only=True)
class ForkingTokens(Controller):
    """Keep the max(int(share·N), 1) tokens of highest entropy H, drop the others.

    The threshold is over the mini-batch; all tokens that tie at it are kept.
    """

    share: Annotated[Number, "(0, 1]"] = 0.2
    """Share of the mini-batch's tokens to keep."""
    source: ClassVar = "Wang et al. 2025 (Beyond the 80/20 Rule); STEER, table 6"
    quadrants: ClassVar = ("I", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        entropy = context.tokens.get("entropy").expand(context.tokens.advantage.shape)
        dropped = ~context.reduce.top_k(entropy, share_of_tokens(self.share, context.size))
        return plan.drop(dropped, **{"forking_tokens/dropped": context.share(dropped)})
