"""DPPO: a token is stopped by the divergence of its policies, not by its importance ratio.

A ratio overstates the change of an unlikely token and understates that of a likely one. Both surrogates estimate the
divergence from the sampled token alone: every other action counts as one, "not this token".
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from ..numbers.kl import log_ratio
from ..numbers.per_run import column
from ..plan import Plan, Slice, importance_ratio
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number
from ..tokens import Tokens
from .base import SurrogateController


@register("dppo")
@dataclass(kw_only=True)
class DPPO(SurrogateController):
    """−A·sg(min(r, ratio_max))·log π; tokens with A > 0 and p − p_old > delta, or A < 0 and p − p_old < −delta, stop.

    With tau, +tau·log²r on every token, which is twice tau as a penalty of `kl_ref` with estimator k2 and π_old as
    reference; a plan has one such penalty. The default of prime-rl is delta = 0.2, tau = 0.001, ratio_max = ∞.
    """

    delta: NotNegative = 0.15
    """Largest change of a token's probability in the direction of A."""
    ratio_max: Annotated[Number, "(0, inf]"] = 20.0
    """Upper limit of the importance ratio, for either sign of A; inf disables it."""
    tau: NotNegative = 0.0
    """Coefficient of log²r; 0 disables it."""
    source: ClassVar = (
        "Qi et al. 2026 (DPPO, arXiv 2602.04879), Binary-TV; verl, compute_policy_loss_dppo_tv; prime-rl, "
        "default_loss_fn"
    )
    quadrants: ClassVar[tuple[str, ...]] = ("I", "II", "III", "IV")

    @property
    def anchored(self) -> bool:
        return "tau" in self.schedules or bool((torch.as_tensor(self.tau) > 0).any())

    def start(self, tokens: Tokens) -> Plan:
        plan = super().start(tokens)
        if not self.anchored:
            return plan
        return plan.add_ref_kl(2 * column(self.tau, tokens.advantage), tokens.get("old_logp"), "k2")

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        ratio = importance_ratio(s.frozen, s.old_logp).minimum(column(self.ratio_max, logp))
        return torch.where(self.stopped(s.frozen, s), 0.0, -s.advantage * ratio * logp)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        risen, fallen = self.beyond(logp, s.old_logp)
        return ((s.direction > 0) & risen) | ((s.direction < 0) & (fallen | logp.isneginf()))

    def beyond(self, logp: Tensor, old_logp: Tensor) -> tuple[Tensor, Tensor]:
        """Return masks (..., n) of the tokens whose probability has risen, and of those whose has fallen, too far."""
        change, delta = logp.exp() - old_logp.exp(), column(self.delta, logp)
        return change > delta, change < -delta


@register("dppo_kl")
@dataclass(kw_only=True)
class DPPOKL(DPPO):
    """`dppo` that stops by q·log(q/p) + (1−q)·log((1−q)/(1−p)) > delta, q = p_old, while p moves in the direction of A.

    This is the KL divergence of the two outcomes "this token" and "another".
    """

    delta: NotNegative = 0.05
    """Largest divergence (nats)."""
    source: ClassVar = "Qi et al. 2026 (DPPO, arXiv 2602.04879), Binary-KL; verl, compute_policy_loss_dppo_kl"

    def beyond(self, logp: Tensor, old_logp: Tensor) -> tuple[Tensor, Tensor]:
        far = binary_kl(old_logp, logp) > column(self.delta, logp)
        return far & (logp > old_logp), far & (logp < old_logp)


def binary_kl(old_logp: Tensor, logp: Tensor) -> Tensor:
    """Return the KL divergence (nats) from the old to the current policy over "this token" and "another", (..., n)."""
    tiny = torch.finfo(logp.dtype).tiny
    old, other_old, other = old_logp.exp(), -torch.expm1(old_logp), (-torch.expm1(logp)).clamp(min=tiny)
    this = torch.where(old > 0, old * log_ratio(old_logp, logp), 0.0)
    return this + torch.special.xlogy(other_old, other_old / other)
