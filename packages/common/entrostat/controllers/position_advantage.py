"""Advantages that grow towards the end of a response."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative


@register("position_advantage")
@dataclass(kw_only=True)
class PositionAdvantage(Controller):
    """A + sign(A)·min(gamma·sigmoid(slope·(pos − ½)), limit·|A|), pos = (position + 1)/length of the response."""

    gamma: NotNegative = 0.1
    """Gain of the last token."""
    slope: NotNegative = 15.0
    """Steepness of the gain at the middle of the response."""
    limit: NotNegative = 0.5
    """Upper limit of the gain, as a share of |A|."""
    source: ClassVar = "Deng et al. 2025 (Decomposing the Entropy-Performance Exchange); STEER, table 6"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"seq_id", "position"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses = context.tokens, context.sequences
        advantage = tokens.advantage
        length = responses.spread(responses.size)
        place = (tokens.get("position") + 1).to(advantage.dtype) / length
        gain = column(self.gamma, advantage) * torch.sigmoid(column(self.slope, advantage) * (place - 0.5))
        gain = torch.minimum(gain, column(self.limit, advantage) * advantage.abs())
        return plan.shape(advantage + advantage.sign() * gain)
