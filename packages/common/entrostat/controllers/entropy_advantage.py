"""Entropy term in the advantage."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("entropy_advantage")
@dataclass(kw_only=True)
class EntropyAdvantage(Controller):
    """A + min(alpha·H, |A|/kappa), H without gradient.

    Does not keep the entropy high: uncertain tokens change it most, in either direction, and in the bandit the entropy
    ends lower than under GRPO.
    """

    alpha: NotNegative = 0.4
    """Advantage added per nat of entropy."""
    kappa: Annotated[Number, "(1, inf)"] = 2.0
    """Divisor in the upper limit |A|/kappa of the addition, which keeps the sign of A."""
    source: ClassVar = "Cheng et al. 2025 (Reasoning with Exploration); STEER, table 6"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        bonus = column(self.alpha, advantage) * context.tokens.get("entropy")
        return plan.shape(advantage + torch.minimum(bonus, advantage.abs() / column(self.kappa, advantage)))
