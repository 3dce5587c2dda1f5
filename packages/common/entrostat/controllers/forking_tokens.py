"""Learning from the uncertain tokens only."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller
from ..plan import Plan
from ..registry import register
from .covariance import share_of_tokens
from .one_sign import share as share_of


@register("forking_tokens")
@dataclass(kw_only=True)
class ForkingTokens(Controller):
    """Keep the max(int(share·N), 1) tokens of highest entropy H, drop the others.

    A threshold over the mini-batch: tokens that tie at it are all kept.
    """

    share: float | Tensor = 0.2
    """Share of the mini-batch's tokens to keep."""
    source: ClassVar = "Wang et al. 2025 (Beyond the 80/20 Rule); STEER, table 6"
    quadrants: ClassVar = ("I", "IV")

    def __post_init__(self) -> None:
        super().__post_init__()
        share = torch.as_tensor(self.share)
        self._require((share > 0) & (share <= 1), "share must lie in (0, 1]")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        entropy = context.tokens.get("entropy").expand(context.tokens.advantage.shape)
        dropped = ~context.reduce.top_k(entropy, share_of_tokens(self.share, context.size))
        return plan.drop(dropped, **{"forking_tokens/dropped": share_of(dropped, context)})
