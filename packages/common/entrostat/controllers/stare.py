"""Higher weight on the least likely tokens with A > 0 while the entropy is below a target."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Share


@register("stare")
@dataclass(kw_only=True)
class Stare(Controller):
    """While Ĥ < target: weight W on the least likely share of the tokens with A > 0, 1 on the others.

    The share is of the tokens of one sign in the mini-batch, rounded up; the released code takes it in each
    micro-batch. both_signs: also weight M on the least likely tokens with A < 0 (variant C2; the default is O1). With
    delta, W += delta and M −= delta if Ĥ < target, and the other way above it, within [1, positive_max] and
    [negative_min, 1]. Above the target all weights are 1, so it raises the entropy and never lowers it.
    """

    target: NotNegative = 0.3
    """Entropy below which tokens are weighted (nats)."""
    share: Share = 0.1
    """Share of the tokens of one sign to weight."""
    positive: Annotated[Number, "[1, inf)"] = 1.1
    """Initial W. The authors take 1.05 from 14B parameters on."""
    negative: Annotated[Number, "[0, 1]"] = 0.9
    """Initial M of `both_signs`. The authors take .95 from 14B parameters on."""
    both_signs: bool = False
    """Weight tokens with A < 0 too."""
    delta: NotNegative = 0.0
    """Step of W and M in one rollout step; 0 keeps them constant. The released schedule takes .01."""
    positive_max: Annotated[Number, "[1, inf)"] = 1.5
    """Upper bound of W."""
    negative_min: Annotated[Number, "[0, 1]"] = 0.5
    """Lower bound of M."""
    source: ClassVar = "Luo et al. 2026 (STARE), sections 4.1 to 4.4, and its released code"
    quadrants: ClassVar = ("II", "III")
    state: ClassVar = ("enabled", "positive_weight", "negative_weight")
    initial_only: ClassVar = ("positive", "negative")
    controls = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        top, bottom = torch.as_tensor(self.positive_max), torch.as_tensor(self.negative_min)
        self._require(torch.as_tensor(self.positive) <= top, "positive must not exceed positive_max")
        self._require(torch.as_tensor(self.negative) >= bottom, "negative must not be below negative_min")
        self.enabled = torch.tensor(True)
        self.positive_weight = as_state(self.positive)
        self.negative_weight = as_state(self.negative)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def observe(self, stats: StepStats) -> None:
        missing = as_state(self.target) - reading(stats.entropy)
        step = self.delta * missing.sign().nan_to_num(0.0)
        one = as_state(1.0)
        self.positive_weight = (self.positive_weight + step).clamp(min=one, max=as_state(self.positive_max))
        self.negative_weight = (self.negative_weight - step).clamp(min=as_state(self.negative_min), max=one)
        self.enabled = torch.where(missing.isnan(), self.enabled, missing > 0)

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        successes = self._least_likely(advantage > 0, context)
        weight = torch.where(successes, self._weight(self.positive_weight, advantage), 1.0)
        info = {"stare/positive": context.share(successes)}
        if self.both_signs:
            failures = self._least_likely(advantage < 0, context)
            weight = torch.where(failures, self._weight(self.negative_weight, advantage), weight)
            info["stare/negative"] = context.share(failures)
        return plan.reweight(weight, **info)

    def _weight(self, weight: Tensor, like: Tensor) -> Tensor:
        return column(torch.where(self.enabled, weight, 1.0), like)

    def _least_likely(self, among: Tensor, context: Context) -> Tensor:
        """Return a mask (..., N) of the `share` of tokens in the mask `among` with the lowest log π."""
        rarity = (-context.tokens.get("logp")).expand(among.shape).masked_fill(~among, -torch.inf)
        wanted = as_state(self.share).to(rarity.device) * context.reduce.count(among)
        size = (wanted - 1e-6).ceil().long()  # in floating point .1·30 is a little more than 3
        return context.reduce.top_k(rarity, size, tie=lambda: context.uniform(self.name))
