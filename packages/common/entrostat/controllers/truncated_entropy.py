"""An entropy bonus that does not feed the tail of the vocabulary."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller, column
from ..plan import Plan
from ..registry import register
from ..support import Support


@register("truncated_entropy_bonus")
@dataclass(kw_only=True)
class TruncatedEntropyBonus(Controller):
    """−coef·H_S, H_S the entropy of the policy restricted to its top-k or top-p actions S and renormalised.

    Whoever has the logits computes H_S with `support.truncated_entropy(logits, controller.support)`: its value goes
    into Tokens.truncated_entropy, and with its gradient into plan.loss(..., truncated_entropy=H_S). The simulator does;
    a trainer that does not is refused by name. The set S has no gradient.
    """

    coef: float | Tensor = 0.001
    """Coefficient of the bonus; negative lowers the entropy."""
    top_k: float | Tensor = 2
    """Actions that count at most; 0 is no limit."""
    top_p: float | Tensor = 1.0
    """Probability that the actions which count must reach; 1 is no limit. The authors take 0.99 with top_k = 0."""
    source: ClassVar = "Huang et al. 2026 (TRE-K, TRE-P); Shen 2025 (clamped entropy of AEnt)"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def __post_init__(self) -> None:
        super().__post_init__()
        top_p = torch.as_tensor(self.top_p)
        self._require(torch.as_tensor(self.top_k) >= 0, "top_k must not be negative")
        self._require((top_p > 0) & (top_p <= 1), "top_p must lie in (0, 1]")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"truncated_entropy"})

    @property
    def support(self) -> Support:
        return Support(top_k=self.top_k, top_p=self.top_p)

    def transform(self, plan: Plan, context: Context) -> Plan:
        return plan.add_truncated_bonus(column(self.coef, context.tokens.advantage))
