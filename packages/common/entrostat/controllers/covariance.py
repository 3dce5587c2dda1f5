"""Clip-Cov and KL-Cov: act on the few tokens whose covariance of log π and advantage drives entropy down."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from .. import entropy_change
from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan, rounding
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Share


def token_covariance(context: Context) -> Tensor:
    """Return (lp − mean lp)(A − mean A) of each token, means over the mini-batch: (..., N).

    A token with a non-finite lp is left out of the mean of lp and gets 0. A token whose lp or A equals the mean within
    rounding gets 0 too, because its sign would depend on how the mini-batch is split.
    """
    logp, advantage = context.tokens.get("logp"), context.tokens.advantage
    finite = logp.isfinite()
    total = context.reduce.sum(torch.where(finite, logp, 0.0))
    mean_logp = (total / context.reduce.count(finite).clamp(min=1)).unsqueeze(-1).to(logp.dtype)
    mean_advantage = context.reduce.mean(advantage).unsqueeze(-1).to(advantage.dtype)
    logp, advantage = _or_mean(torch.where(finite, logp, mean_logp), mean_logp), _or_mean(advantage, mean_advantage)
    return entropy_change.covariance(logp, advantage, mean_logp, mean_advantage)


def _or_mean(x: Tensor, mean: Tensor) -> Tensor:
    """Return x, with entries that equal the mean within rounding replaced by the mean."""
    return torch.where((x - mean).abs() > rounding(x) * x.abs(), x, mean)


def share_of_tokens(share: Number, size: int | Tensor) -> Tensor:
    """Return max(int(k·N), 1), int64."""
    return (torch.as_tensor(share, dtype=torch.float64) * size).long().clamp(min=1)


@register("clip_cov")
@dataclass(kw_only=True)
class ClipCov(Controller):
    """Drop max(int(k·N), 1) tokens drawn uniformly among those with omega_low < cov < omega_high.

    Entropy Mechanism, equations 8 to 10. Clips the ratio at 1 ± 1 unless the chain names a surrogate. As in the
    released code and verl (compute_policy_loss_clip_cov), tokens that the ratio clip has already stopped are not drawn.
    """

    k: Share = 2e-4
    """Share of the mini-batch's tokens to drop."""
    omega_low: Annotated[Number, "[-inf, inf]"] = 1.0
    """Lower limit for the covariance of drawn tokens; −inf disables it."""
    omega_high: Annotated[Number, "[-inf, inf]"] = 5.0
    """Upper limit for the covariance of drawn tokens; inf disables it."""
    exclude_clipped: bool = True
    """Exclude tokens that the ratio clip has stopped from the draw; false also spends the budget on them."""
    source: ClassVar = "Entropy Mechanism, equations 8 to 10"
    quadrants: ClassVar = ("I", "III")
    implied_surrogate: ClassVar = ("ppo", {"eps_low": 1.0, "eps_high": 1.0, "dual_clip": inf})

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = torch.as_tensor(self.omega_low), torch.as_tensor(self.omega_high)
        self._require(low < high, "omega_low must be below omega_high")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        covariance = token_covariance(context)
        candidate = (covariance > column(self.omega_low, covariance)) & (
            covariance < column(self.omega_high, covariance)
        )
        if self.exclude_clipped:
            candidate &= ~plan.clipped(context.tokens.get("logp"))
        drawn = context.reduce.top_k(context.uniform(self.name, among=candidate), share_of_tokens(self.k, context.size))
        return plan.drop(drawn, **{"clip_cov/dropped": context.share(drawn)})


@register("kl_cov")
@dataclass(kw_only=True)
class KLCov(Controller):
    """Add beta·|lp − old| to the max(int(k·N), 1) tokens of highest covariance.

    Entropy Mechanism, equations 11 and 12; k = 2e-3 for 7B and 2e-4 for 32B parameters. No ratio clip unless the chain
    names a surrogate. Strictly on-policy the penalty has no gradient, so this is GRPO.
    """

    k: Share = 2e-3
    """Share of the mini-batch's tokens to penalise."""
    beta: NotNegative = 1.0
    """Coefficient of the penalty."""
    source: ClassVar = "Entropy Mechanism, equations 11 and 12"
    quadrants: ClassVar = ("I", "III")
    implied_surrogate: ClassVar = ("clip_free", {})
    idle_on_policy: ClassVar = True

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "old_logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        covariance = token_covariance(context)
        size = share_of_tokens(self.k, context.size)
        top = context.reduce.top_k(covariance, size, tie=lambda: context.uniform(self.name))
        return plan.add_kl(torch.where(top, column(self.beta, covariance), 0.0))
