"""DPPO and IPO: a token is stopped by the divergence of its policies, not by its importance ratio.

A ratio overstates the change of an unlikely token and understates that of a likely one. The surrogates estimate the
divergence from the sampled token alone: every other action counts as one, "not this token".
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from ..numbers.kl import LOG_RATIO_LIMIT, log_ratio
from ..numbers.per_run import column
from ..plan import Plan, Slice, importance_ratio
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number
from ..tokens import Tokens
from .base import SurrogateController, held_near_rollout


@dataclass(kw_only=True)
class PenalisedSurrogate(SurrogateController):
    """Surrogate with +tau·log²r on every token, also on those that it stops."""

    tau: NotNegative = 0.0
    """Coefficient of log²r; 0 disables it."""

    @property
    def anchored(self) -> bool:
        return "tau" in self.schedules or bool((torch.as_tensor(self.tau) > 0).any())

    def start(self, tokens: Tokens) -> Plan:
        plan = super().start(tokens)
        if not self.anchored:
            return plan
        return held_near_rollout(plan, tokens, 2 * column(self.tau, tokens.advantage))


@register("dppo")
@dataclass(kw_only=True)
class DPPO(PenalisedSurrogate):
    """−A·sg(min(r, ratio_max))·log π; tokens with A > 0 and p − p_old > delta, or A < 0 and p − p_old < −delta, stop.

    With tau, +tau·log²r on every token, which is twice tau as a penalty of `kl_ref` with estimator k2 and π_old as
    reference; a plan has one such penalty. The default of prime-rl is delta = 0.2, tau = 0.001, ratio_max = ∞.
    """

    delta: NotNegative = 0.15
    """Largest change of a token's probability in the direction of A."""
    ratio_max: Annotated[Number, "(0, inf]"] = 20.0
    """Upper limit of the importance ratio, for either sign of A; inf disables it."""
    source: ClassVar = (
        "Qi et al. 2026 (DPPO, arXiv 2602.04879), Binary-TV; verl, compute_policy_loss_dppo_tv; prime-rl, "
        "default_loss_fn"
    )
    quadrants: ClassVar[tuple[str, ...]] = ("I", "II", "III", "IV")

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


@register("ipo")
@dataclass(kw_only=True)
class IPO(PenalisedSurrogate):
    """−r·A + tau·log²r; tokens with |p − p_old| > delta are stopped, whatever the sign of A.

    Unlike `dppo`, also stops a token that moved against its advantage, which its gradient would bring back; tau does so
    instead, twice tau being the coefficient of a penalty as in `dppo`. Has nothing in common with the loss of that name
    on preferences (Azar et al. 2023). prime-rl multiplies A by adv_tau, 1 by default.
    """

    delta: NotNegative = 0.1
    """Largest change of a token's probability, up or down."""
    tau: NotNegative = 0.001
    """Coefficient of log²r; 0 disables it."""
    source: ClassVar = "prime-rl, ipo_loss_fn and the defaults of IPOLossConfig"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        return torch.where(self.stopped(s.frozen, s), 0.0, -s.advantage * importance_ratio(logp, s.old_logp))

    def slope(self, logp: Tensor, s: Slice) -> Tensor:
        """Return −A·r; 0 if the token is stopped or the log-ratio beyond ±20."""
        assert s.old_logp is not None
        gone = self.stopped(logp, s) | (log_ratio(logp, s.old_logp).abs() > LOG_RATIO_LIMIT)
        return torch.where(gone, 0.0, -s.advantage * importance_ratio(logp, s.old_logp))

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        change = (logp.exp() - s.old_logp.exp()).abs()
        return (s.direction != 0) & (change > column(self.delta, logp))


def binary_kl(old_logp: Tensor, logp: Tensor) -> Tensor:
    """Return the KL divergence (nats) from the old to the current policy over "this token" and "another", (..., n)."""
    tiny = torch.finfo(logp.dtype).tiny
    old, other_old, other = old_logp.exp(), -torch.expm1(old_logp), (-torch.expm1(logp)).clamp(min=tiny)
    this = torch.where(old > 0, old * log_ratio(old_logp, logp), 0.0)
    return this + torch.special.xlogy(other_old, other_old / other)
