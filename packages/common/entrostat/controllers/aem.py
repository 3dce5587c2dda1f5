"""AEM: the advantage of a turn, smaller the more uncertain the policy was in it."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..numbers.segments import Segments, quantile_within
from ..plan import Plan, rounding
from ..registry import register
from ..settings.hyperparameters import NotNegative


@register("aem")
@dataclass(kw_only=True)
class Aem(Controller):
    """Weight e^(−λ·h)/mean(e^(−λ·h)), h the mean entropy of a turn, scaled to 0..1 among the turns of its group.

    A turn is what the paper calls a response: one uninterrupted run of the policy's tokens; its mean entropy stands for
    its surprisal. Turns of low entropy weigh more, so that the entropy rises while most advantages are negative and
    falls once most are positive. Turns with equal entropies have the weight 1, as in the bandit. A whole group must be
    in one mini-batch and on one rank.
    """

    lam: NotNegative = 1.0
    """λ: how far weights part; the largest is e^λ times the smallest. Ours."""
    among: Literal["group", "response"] = "group"
    """Turns that are compared: group, those of all responses to a prompt, or response, those of one."""
    source: ClassVar = "Zhao et al. 2026 (AEM, arXiv 2605.00425)"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy", "seq_id", "turn_id", *(("group_id",) if self.among == "group" else ())})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, turns = context.tokens, context.turns
        entropy = turns.mean(tokens.get("entropy").expand(tokens.advantage.shape))
        owner = context.sequences.index if self.among == "response" else tokens.get("group_id")
        compared = Segments(turns.pick(owner))
        low, high = (compared.spread(quantile_within(entropy, compared, share)) for share in (0.0, 1.0))
        gap = high - low
        apart = gap > rounding(entropy) * high
        relative = torch.where(apart, (entropy - low) / gap.clamp(min=torch.finfo(gap.dtype).tiny), 0.0)
        weight = (-column(self.lam, relative) * relative).exp()
        return plan.reweight(turns.spread(weight / compared.spread(compared.mean(weight))))
