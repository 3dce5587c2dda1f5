"""OPEFO: scale entropy-raising and entropy-lowering tokens so that their flows cancel."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .. import entropy_change
from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan, importance_ratio
from ..registry import register
from ..settings.hyperparameters import Share


@register("opefo")
@dataclass(kw_only=True)
class Opefo(Controller):
    """Weight 1 + λ if ΔH > 0 and 1 − λ if ΔH < 0, with λ* = (M − P)/(M + P) that makes the net flow zero.

    P and M are the sums of positive and of negative ΔH over the mini-batch (OPEFO, equations 6 to 9). Strictly
    on-policy. estimator="paper": ΔH = −A(1−p)²(lp + H); "exact": the complete first-order flow (Wang et al. 2026, arXiv
    2602.03392, theorem 3.3).
    Variants (table 2): static takes λ = lambda_static; plus_only and minus_only apply λ* to one side.
    """

    variant: Literal["both", "static", "plus_only", "minus_only"] = "both"
    """Variant of λ: both, static, plus_only or minus_only."""
    estimator: Literal["paper", "exact"] = "paper"
    """Estimator of a token's flow: paper or exact."""
    lambda_static: Share = 0.001
    """λ of the variant static."""
    source: ClassVar = "OPEFO, equations 6 to 9, table 2"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    strictly_on_policy: ClassVar = True

    @property
    def needs(self) -> frozenset[str]:
        moments = {"s2", "s2l", "old_logp"} if self.estimator == "exact" else set()
        return frozenset({"logp", "entropy"} | moments)

    def flow(self, context: Context) -> Tensor:
        """Return the estimated ΔH of each token, (..., N), nats per unit learning rate; 0 if it has no finite value."""
        t = context.tokens
        logp, entropy = t.get("logp"), t.get("entropy")
        if self.estimator == "paper":
            flow = entropy_change.opefo(logp, entropy, t.advantage)
        else:
            weight = t.advantage * importance_ratio(logp, t.get("old_logp"))
            flow = entropy_change.exact(logp, entropy, t.get("s2"), t.get("s2l"), weight)
        return flow.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    def transform(self, plan: Plan, context: Context) -> Plan:
        flow = self.flow(context)
        if self.variant == "static":
            balance = torch.as_tensor(self.lambda_static, dtype=torch.float64)
        else:
            gain = context.reduce.sum(flow.clamp(min=0))
            loss = context.reduce.sum((-flow).clamp(min=0))
            total = gain + loss
            balance = torch.where(total > 0, (loss - gain) / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
        scaled = column(balance, flow)
        up = 1.0 if self.variant == "minus_only" else 1 + scaled
        down = 1.0 if self.variant == "plus_only" else 1 - scaled
        factor = torch.where(flow > 0, up, torch.where(flow < 0, down, torch.ones_like(flow)))
        return plan.reweight(factor, **{"opefo/lambda": balance})
