"""An entropy bonus that does not feed the tail of the vocabulary."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..controller import Context, Controller, column
from ..hyperparameters import NotNegative, Number
from ..plan import Plan
from ..registry import register
from ..support import Support


@register("truncated_entropy_bonus")
@dataclass(kw_only=True)
class TruncatedEntropyBonus(Controller):
    """−coef·H_S, H_S the entropy of the policy restricted to its top-k or top-p actions S and renormalised.

    Whoever has the logits computes H_S with `support.truncated_entropy(logits, controller.support)` and passes it to
    plan.loss(..., truncated_entropy=H_S), with its gradient; the set S has none. The simulator and llmtrain do; a
    trainer that does not is refused by name.
    """

    coef: Number = 0.001
    """Coefficient of the bonus; negative lowers the entropy."""
    top_k: NotNegative = 2
    """Actions that count at most; 0 is no limit."""
    top_p: Annotated[Number, "(0, 1]"] = 1.0
    """Probability that the actions which count must reach; 1 is no limit. The authors take 0.99 with top_k = 0."""
    source: ClassVar = "Huang et al. 2026 (TRE-K, TRE-P); Shen 2025 (clamped entropy of AEnt)"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def support(self) -> Support:
        return Support(top_k=self.top_k, top_p=self.top_p)

    def transform(self, plan: Plan, context: Context) -> Plan:
        return plan.add_truncated_bonus(column(self.coef, context.tokens.advantage))
