"""Entropy bonus that does not raise the tail of the vocabulary."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..numbers.support import Support
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("truncated_entropy_bonus")
@dataclass(kw_only=True)
class TruncatedEntropyBonus(Controller):
    """−coef·H_S, H_S the entropy of the policy restricted to its top-k or top-p actions S and renormalised.

    The trainer computes H_S from the logits with `support.truncated_entropy(logits, controller.support)` and passes it,
    with its gradient, to plan.loss(..., truncated_entropy=H_S); the set S has no gradient. The simulator and llmtrain
    do this; integrations without access to the logits raise ValueError.
    """

    coef: Number = 0.001
    """Coefficient of the bonus; negative lowers the entropy."""
    top_k: NotNegative = 2
    """Upper limit for the number of actions in S; 0 disables it."""
    top_p: Annotated[Number, "(0, 1]"] = 1.0
    """Total probability that S must reach; 1 disables the limit. The authors take 0.99 with top_k = 0."""
    source: ClassVar = "Huang et al. 2026 (TRE-K, TRE-P); Shen 2025 (clamped entropy of AEnt)"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def support(self) -> Support:
        return Support(top_k=self.top_k, top_p=self.top_p)

    def transform(self, plan: Plan, context: Context) -> Plan:
        return plan.add_truncated_bonus(column(self.coef, context.tokens.advantage))
