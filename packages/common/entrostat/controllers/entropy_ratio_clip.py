"""Dropping tokens whose distribution has changed its entropy."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import Number


@register("entropy_ratio_clip")
@dataclass(kw_only=True)
class EntropyRatioClip(Controller):
    """Drop tokens unless ratio_low < H/H_old < ratio_high; a token stays if both entropies are 0.

    Bounds the change of a whole distribution, not of the sampled token. No-op strictly on-policy.
    """

    ratio_low: Number = 0.95
    """Lower bound of H/H_old."""
    ratio_high: Number = 1.05
    """Upper bound of H/H_old."""
    source: ClassVar = "Su et al. 2025 (Entropy Ratio Clipping)"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    idle_on_policy: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = torch.as_tensor(self.ratio_low), torch.as_tensor(self.ratio_high)
        self._require((low < 1) & (high > 1), "ratio_low must be below 1 and ratio_high above")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy", "old_entropy"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        entropy, old = context.tokens.get("entropy"), context.tokens.get("old_entropy")
        inside = (entropy > column(self.ratio_low, old) * old) & (entropy < column(self.ratio_high, old) * old)
        dropped = ~(inside | (entropy == old))
        return plan.drop(dropped, **{"entropy_ratio_clip/dropped": context.share(dropped)})
