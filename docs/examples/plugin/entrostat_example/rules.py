"""Controllers of this plug-in."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from entrostat import Controller, StepStats
from entrostat.controller import Context, as_reading, column
from entrostat.hyperparameters import Number
from entrostat.plan import Plan


@dataclass(kw_only=True)
class Floor(Controller):
    """Weight 1 + (1 − Ĥ/target) of the tokens with A < 0 while Ĥ < target; 1 otherwise."""

    target: Annotated[Number, "(0, inf)"] = 0.5
    """Entropy below which wrong responses weigh more (nats)."""
    source = "docs/examples/plugin"
    quadrants = ("I", "II")
    state: ClassVar = ("gap",)
    controls = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gap = torch.tensor(0.0, dtype=torch.float64)

    def observe(self, stats: StepStats) -> None:
        entropy = as_reading(stats.entropy)  # (runs…,); NaN moves nothing
        self.gap = torch.where(entropy.isnan(), self.gap, (1 - entropy / self.target).clamp(min=0))

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage: Tensor = context.tokens.advantage
        return plan.reweight(1 + (advantage < 0) * column(self.gap, advantage))
