"""Reweighting of tokens with positive advantage, which are the ones that lower the entropy."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number
from ..settings.schedules import Knot, Schedule

STAGE = Schedule("linear", (Knot(0.5, 0.0), Knot(1.0, 1.0)))
"""λ of the variant stage over the share of the training that is done."""


@register("positive_reweight")
@dataclass(kw_only=True)
class PositiveReweight(Controller):
    """Weight λ on tokens with A > 0, 1 on the others. Revisiting Entropy, section 7.3, equation 5.

    stage: λ = 0 in the first half of training, then linear from 0 to 1.
    epoch: λ = (e − 1)/(E − 1) in epoch e of E ≥ 2.
    entropy_guided: λ += delta when Ĥ > target, −= delta otherwise, within [0, lambda_max]; starts at lambda_init.
    """

    variant: Literal["stage", "epoch", "entropy_guided"] = "entropy_guided"
    """Rule for λ: stage, epoch or entropy_guided."""
    target: NotNegative = 0.2
    """Target entropy of entropy_guided (nats)."""
    delta: NotNegative = 0.01
    """Step of λ in one rollout step."""
    lambda_init: Number = 1.0
    """Initial λ of entropy_guided."""
    lambda_max: NotNegative = 2.0
    """Upper bound of λ."""
    source: ClassVar = "Revisiting Entropy, equation 5"
    quadrants: ClassVar = ("I", "II")
    state: ClassVar = ("positive_weight",)
    initial_only: ClassVar = ("lambda_init",)

    def __post_init__(self) -> None:
        super().__post_init__()
        start = torch.as_tensor(self.lambda_init)
        inside = (start >= 0) & (start <= self.lambda_max)
        self._require(inside | (self.variant != "entropy_guided"), "lambda_init must lie in [0, lambda_max]")
        self.positive_weight = as_state(self.lambda_init if self.variant == "entropy_guided" else 0.0)

    @property
    def controls(self) -> str | None:
        return "weight" if self.variant == "entropy_guided" else None

    def observe(self, stats: StepStats) -> None:
        if self.variant == "stage":
            if stats.total_steps is None:
                raise ValueError("positive_reweight: variant 'stage' needs StepStats.total_steps")
            self.positive_weight = as_state(STAGE.at((stats.step or 0) / max(stats.total_steps, 1))[0])
        elif self.variant == "epoch":
            if stats.epoch is None or stats.epochs is None:
                raise ValueError("positive_reweight: variant 'epoch' needs StepStats.epoch and epochs")
            if stats.epochs < 2:  # λ would stay 0
                raise ValueError("positive_reweight: variant 'epoch' needs 2 epochs or more: use stage instead")
            self.positive_weight = as_state((stats.epoch - 1) / (stats.epochs - 1))
        else:
            entropy = reading(stats.entropy)
            delta = as_state(self.delta)
            moved = self.positive_weight + torch.where(entropy > self.target, delta, -delta)
            moved = moved.clamp(min=as_state(0.0), max=as_state(self.lambda_max))
            self.positive_weight = torch.where(entropy.isnan(), self.positive_weight, moved)

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        return plan.reweight(torch.where(advantage > 0, column(self.positive_weight, advantage), 1.0))
