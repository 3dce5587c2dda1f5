"""Entropy bonuses in the loss: −c·H, with c fixed or adapted to the measured entropy."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("entropy_bonus")
@dataclass(kw_only=True)
class EntropyBonus(Controller):
    """−coef·H on every token (PPO). A negative coefficient lowers the entropy.

    With tokens=kept the bonus is −coef times the mean of H over the tokens that no earlier part of the chain has
    dropped, as in TRL with top_entropy_quantile: `forking_tokens+entropy_bonus`.
    """

    coef: Number = 0.01
    """Coefficient of the bonus."""
    tokens: Literal["all", "kept"] = "all"
    """Tokens that get the bonus: all, or those kept by the earlier parts of the chain."""
    source: ClassVar = "Schulman et al. 2017 (PPO), equation 9"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        coef = column(self.coef, advantage)
        if self.tokens == "kept":
            kept = plan.keep.expand(advantage.shape)
            share = context.share(kept).unsqueeze(-1).to(advantage.dtype)
            coef = torch.where(kept, coef / share, 0.0)
        return plan.add_entropy_bonus(coef)


@register("adaptive_entropy")
@dataclass(kw_only=True)
class AdaptiveEntropy(Controller):
    """−c·1[Ĥ < target]·H, with c += delta when Ĥ < target and −= delta otherwise, kept within [coef_min, coef_max].

    Revisiting Entropy, equations 1 and 2; Skywork-OR1. The on/off switch is separate from c: c is not reset to 0 while
    the entropy is above the target.
    """

    target: NotNegative = 0.2
    """Entropy below which the bonus is on (nats)."""
    delta: NotNegative = 1e-4
    """Step of the coefficient in one rollout step."""
    coef_min: Number = 0.0
    """Lower bound of the coefficient."""
    coef_max: Number = 0.005
    """Upper bound of the coefficient."""
    initial: Number = 0.0
    """Initial coefficient."""
    source: ClassVar = "Revisiting Entropy, equations 1 and 2; He et al. 2025 (Skywork-OR1)"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar[tuple[str, ...]] = ("coef", "enabled")
    initial_only: ClassVar = ("initial",)
    controls = "bonus"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.coef_min <= self.coef_max), "coef_min must not exceed coef_max")
        initial = torch.as_tensor(self.initial)
        inside = (initial >= self.coef_min) & (initial <= self.coef_max)
        self._require(inside, "initial must lie between coef_min and coef_max")
        self.coef = as_state(self.initial)
        self.enabled = torch.tensor(False)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def observe(self, stats: StepStats) -> None:
        entropy = reading(stats.entropy)
        known = ~entropy.isnan()
        below = entropy < self.target
        delta = as_state(self.delta)
        moved = self.coef + torch.where(below, delta, -delta)
        moved = moved.clamp(min=as_state(self.coef_min), max=as_state(self.coef_max))
        self.coef = torch.where(known, moved, self.coef)
        self.enabled = torch.where(known, below, self.enabled)

    def transform(self, plan: Plan, context: Context) -> Plan:
        return plan.add_entropy_bonus(column(self.coef * self.enabled, context.tokens.advantage))


@register("adaptive_entropy_trl")
@dataclass(kw_only=True)
class AdaptiveEntropyTrl(AdaptiveEntropy):
    """`adaptive_entropy` that follows the entropy of the rollout before: coefficient and switch come one step later.

    With one optimizer step per rollout and aggregation=token-mean this is TRL's `use_adaptive_entropy`, which measures
    the entropy while it makes a step and applies the result in the next one; the first step has no bonus. With several
    steps per rollout TRL moves the coefficient after each of them.
    """

    delta: NotNegative = 0.005
    coef_max: Number = 1.0
    source: ClassVar = "TRL 1.16, GRPOTrainer._compute_loss with use_adaptive_entropy; He et al. 2025 (Skywork-OR1)"
    state: ClassVar = ("coef", "enabled", "seen")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen = as_state(torch.nan)
        """Entropy of the rollout before (nats); NaN until one was observed."""

    def observe(self, stats: StepStats) -> None:
        entropy = reading(stats.entropy)
        known = ~entropy.isnan()
        super().observe(replace(stats, entropy=torch.where(known, self.seen, torch.nan)))
        self.seen = torch.where(known, entropy, self.seen)
