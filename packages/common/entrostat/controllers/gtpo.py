"""GTPO: token-level reward, larger at uncertain tokens of correct responses."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..advantages.groups import STD_EPS
from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative


@register("gtpo")
@dataclass(kw_only=True)
class Gtpo(Controller):
    """R + alpha·H_t·d_t/Σ_k H_k,t on the tokens of responses with R > 0, k over the d_t such responses that reach t.

    H_t is the entropy at position t and k runs over the correct responses of the group, so the addition is alpha on
    average. into="reward": the advantage is (R̂ − mean)/(std + 1e-6) over all tokens of the group. into="advantage": the
    addition is added to the given advantage. A whole group must be in one mini-batch and on one rank.
    If the responses of a group have equal entropies, as in the bandit, "reward" is GRPO.
    """

    alpha: NotNegative = 0.1
    """Mean of the addition. STEER's table gives no value; this one is ours."""
    into: Literal["reward", "advantage"] = "reward"
    """Quantity that gets the addition: reward or advantage."""
    source: ClassVar = "Tan and Pan 2025 (GTPO); STEER, table 6"
    quadrants: ClassVar = ("I", "II")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy", "reward", "group_id", "seq_id", "position"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens = context.tokens
        like = tokens.advantage
        reward = tokens.get("reward").expand(like.shape).double()
        bonus = column(self.alpha, reward) * self._relative_entropy(context, reward > 0)
        if self.into == "advantage":
            return plan.shape((like + bonus).to(like.dtype))
        return plan.shape(_normalised(reward + bonus, context).to(like.dtype))

    def _relative_entropy(self, context: Context, correct: Tensor) -> Tensor:
        """Return H_t over its mean at that position among the group's correct responses; 0 in other responses."""
        tokens = context.tokens
        position = tokens.get("position")
        width = int(position.max()) + 1 if position.numel() else 1
        place = (context.sequences.spread(context.groups.index * width) + position).expand(correct.shape)
        entropy = torch.where(correct, tokens.get("entropy").double(), 0.0)
        table = entropy.new_zeros(*entropy.shape[:-1], context.groups.count * width)
        total = table.scatter_add(-1, place, entropy)
        mean = total.div_(table.scatter_add_(-1, place, correct.to(entropy.dtype)).clamp_(min=1)).gather(-1, place)
        # entropies that are all 0 are equal
        relative = torch.where(mean > 0, entropy / mean.clamp(min=torch.finfo(mean.dtype).tiny), 1.0)
        return torch.where(correct, relative, 0.0)


def _normalised(reward: Tensor, context: Context) -> Tensor:
    """Return (R − mean)/(std + 1e-6) over all tokens of each group, unbiased, (..., N).

    In float64, and exactly 0 if all tokens of a group have the same reward: dividing by 1e-6 would amplify rounding.
    """
    responses, groups = context.sequences, context.groups

    def of_group(x: Tensor, divisor: Tensor) -> Tensor:
        """Return the sum of x over the tokens of each token's group, divided by the group's divisor, (..., N)."""
        return responses.spread(groups.spread(groups.sum(responses.sum(x)) / divisor.clamp(min=1)))

    size = groups.sum(responses.size)
    above = reward - responses.spread(groups.spread(groups.pick(responses.pick(reward))))
    centred = above - of_group(above, size)
    return centred / (of_group(centred**2, size - 1).sqrt() + STD_EPS)
