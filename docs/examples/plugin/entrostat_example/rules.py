"""Controllers of this plug-in."""

from dataclasses import dataclass

import torch

import entrostat as es


@dataclass(kw_only=True)
class Floor(es.Controller):
    """Weight 1 + (1 − Ĥ/target) of the tokens with A < 0 while Ĥ < target; 1 otherwise."""

    target: es.Positive = 0.5
    """Entropy below which wrong responses weigh more (nats)."""
    source = "docs/examples/plugin"
    quadrants = ("I", "II")
    state = ("gap",)
    controls = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gap = torch.tensor(0.0, dtype=torch.float64)

    def observe(self, stats: es.StepStats) -> None:
        entropy = es.reading(stats.entropy)  # (runs…,); NaN moves nothing
        self.gap = torch.where(entropy.isnan(), self.gap, (1 - entropy / self.target).clamp(min=0))

    def transform(self, plan: es.Plan, context: es.Context) -> es.Plan:
        advantage = context.tokens.advantage
        return plan.reweight(1 + (advantage < 0) * es.column(self.gap, advantage))
