"""STEER: the more a token would change the entropy, the less it weighs."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from .. import entropy_change
from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan, importance_ratio
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive

TOP_SHARE = 0.2
"""Share of tokens that the binary mapping weighs down: those above the 80% quantile of Ω."""


@register("steer")
@dataclass(kw_only=True)
class Steer(Controller):
    """Weight falling from 1 to lambda_min with Ω, the size of the entropy change a token would cause.

    Ω = |(1_clip·A/π_old)·p(1−p)(lp + H)| (STEER, theorem 1), or the exact flow with estimator="exact" (theorem 3.3 of
    Wang et al. 2026, arXiv 2602.03392).
    exponential: exp(ln λ_min · Ω/max Ω) (equation 3).
    linear: λ_max − (λ_max − λ_min)(Ω − Ω_min)/(Ω_max − Ω_min), or the middle of both if all Ω are equal.
    binary: λ_min on the 20% of tokens with the largest Ω, 1 on the others (E.3).
    Released code (compute_token_weights): no 1_clip, H at rollout time, λ_min = 0.8, max Ω at least 0.02 in the
    exponential mapping; its recipe clips at 0.2 / 0.28 with c = 10.
    """

    mapping: Literal["exponential", "linear", "binary"] = "exponential"
    """Mapping from Ω to the weight: exponential, linear or binary."""
    estimator: Literal["paper", "exact"] = "paper"
    """Estimator of Ω: paper or exact."""
    lambda_min: Positive = 0.7
    """Weight of the token with the largest Ω, at most 1."""
    lambda_max: Annotated[Number, "[1, inf)"] = 1.2
    """Weight of the token with the smallest Ω under the linear mapping."""
    mask_clipped: bool = True
    """Set Ω to 0 for tokens that the ratio clip has stopped."""
    rollout_entropy: bool = False
    """Use H of the rollout policy instead of the current policy."""
    omega_floor: NotNegative = 0.0
    """Lower limit for the largest Ω in the exponential mapping (nats per unit learning rate)."""
    source: ClassVar = "STEER, theorem 1, equation 3, appendix E.3"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    presets: ClassVar = {
        "paper": {},
        "released": {"lambda_min": 0.8, "mask_clipped": False, "rollout_entropy": True, "omega_floor": 0.02},
    }
    released_surrogate: ClassVar = ("clip_higher", {"dual_clip": 10.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.lambda_min <= 1), "lambda_min must not be above 1")
        if self.estimator == "exact" and self.rollout_entropy:
            self.rollout_entropy = False  # the exact flow needs the current distribution

    @property
    def needs(self) -> frozenset[str]:
        entropy = "old_entropy" if self.rollout_entropy else "entropy"
        moments = {"s2", "s2l"} if self.estimator == "exact" else set()
        return frozenset({"logp", "old_logp", entropy} | moments)

    def omega(self, plan: Plan, context: Context) -> Tensor:
        """Return Ω of each token, (..., N), nats per unit learning rate; 0 if the formula has no finite value."""
        tokens = context.tokens
        logp = tokens.get("logp")
        weight = tokens.advantage * importance_ratio(logp, tokens.get("old_logp"))
        if self.mask_clipped:
            weight = weight * ~plan.clipped(logp)
        if self.estimator == "exact":
            entropy = tokens.get("entropy")
            flow = entropy_change.exact(logp, entropy, tokens.get("s2"), tokens.get("s2l"), weight)
        else:
            entropy = tokens.get("old_entropy" if self.rollout_entropy else "entropy")
            flow = entropy_change.steer(logp, entropy, weight)
        return flow.abs().nan_to_num_(nan=0.0, posinf=0.0)

    def transform(self, plan: Plan, context: Context) -> Plan:
        omega = self.omega(plan, context)
        reduce = context.reduce
        largest = reduce.max(omega).unsqueeze(-1)
        low = column(self.lambda_min, omega)
        if self.mapping == "exponential":
            floored = torch.maximum(largest, column(self.omega_floor, omega))
            factor = (low.log() * omega / floored.clamp(min=torch.finfo(omega.dtype).tiny)).exp()
        elif self.mapping == "linear":
            smallest = reduce.min(omega).unsqueeze(-1)
            high = column(self.lambda_max, omega)
            span = largest - smallest
            place = torch.where(span > 0, (omega - smallest) / span, 0.5)
            factor = high - (high - low) * place
        else:
            top = reduce.top_k(omega, int(TOP_SHARE * context.size), tie=lambda: context.uniform(self.name))
            factor = torch.where(top, low, 1.0)
        return plan.reweight(factor, **{"steer/omega_max": largest.squeeze(-1)})
