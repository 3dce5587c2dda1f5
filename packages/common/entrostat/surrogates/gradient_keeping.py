"""Surrogates that keep the gradient of a token far from the rollout policy."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from ..numbers.kl import log_ratio
from ..numbers.per_run import column
from ..plan import Slice, beyond_bounds, importance_ratio
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive
from .base import Aggregation, SurrogateController, never


@register("cispo")
@dataclass(kw_only=True)
class CISPO(SurrogateController):
    """−sg(clip(r, 1−eps_low, 1+eps_high))·A·log π: the ratio is a bounded weight, and no token is stopped."""

    eps_low: NotNegative = 1.0
    """Distance of the weight's lower bound below 1; 1 disables it."""
    eps_high: NotNegative = 4.0
    """Distance of the weight's upper bound above 1."""
    source: ClassVar = "MiniMax 2025 (MiniMax-M1, CISPO)"
    quadrants: ClassVar = ("II", "III")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, torch.inf

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        return -importance_ratio(s.frozen, s.old_logp).clamp(s.clip_low, s.clip_high) * s.advantage * logp

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return never(logp, s)


@register("ce_gppo")
@dataclass(kw_only=True)
class CEGPPO(SurrogateController):
    """PPO with −beta_low·(1−eps_low)·(r/sg r)·A on tokens clipped below, −beta_high·(1+eps_high)·(r/sg r)·A above.

    Clipped tokens keep a bounded gradient. "Clipped below" means A < 0 and r < 1 − eps_low, "above" A > 0 and
    r > 1 + eps_high. If both betas are 0, this is PPO without dual clip. A larger beta_high raises the entropy, a
    larger beta_low lowers it. The released function (compute_gppo_loss_general_beta) limits the loss of tokens with
    A < 0 to −dual_clip·A, with 3 by default; its recipes set 10.
    """

    eps_low: NotNegative = 0.2
    """Distance below 1 from which the gradient is bounded if A < 0."""
    eps_high: NotNegative = 0.2
    """Distance above 1 from which the gradient is bounded if A > 0."""
    beta_low: NotNegative = 0.75
    """Share of the gradient kept below (β1)."""
    beta_high: NotNegative = 1.0
    """Share of the gradient kept above (β2)."""
    dual_clip: Annotated[Number, "(1, inf]"] = torch.inf
    """Upper bound of the ratio if A < 0; inf disables it."""
    presets: ClassVar = {"paper": {}, "released": {"dual_clip": 3.0}}
    source: ClassVar = "Su et al. 2025 (CE-GPPO) and its released code"
    quadrants: ClassVar = ("II", "III")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, self.dual_clip

    def _outside(self, logp: Tensor, s: Slice) -> tuple[Tensor, Tensor]:
        """Return masks (..., n) of the tokens clipped below and above."""
        assert s.old_logp is not None
        ratio = importance_ratio(logp, s.old_logp)
        return (s.direction < 0) & (ratio < s.clip_low), (s.direction > 0) & (ratio > s.clip_high)

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        below, above = self._outside(s.frozen, s)
        kept = log_ratio(logp, s.frozen).exp()
        low, high = column(self.beta_low, logp) * s.clip_low, column(self.beta_high, logp) * s.clip_high
        ratio = importance_ratio(logp, s.old_logp)
        if s.dual_clip is not None:
            ratio = torch.where(s.direction < 0, ratio.minimum(s.dual_clip), ratio)
        return -s.advantage * torch.where(below, low * kept, torch.where(above, high * kept, ratio))

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        below, above = self._outside(logp, s)
        beyond = beyond_bounds(logp, s) & ~below & ~above  # by the dual clip
        return beyond | (below & (column(self.beta_low, logp) == 0)) | (above & (column(self.beta_high, logp) == 0))


@register("aspo")
@dataclass(kw_only=True)
class ASPO(SurrogateController):
    """−A·(r/sg r)·min(v, dual_clip), v = 1/r for A > 0 and r for A < 0; tokens that PPO would stop are stopped.

    The ratio of tokens with A > 0 is inverted: a token that has lost probability since the rollout gets a larger
    gradient, one that has gained probability a smaller one, so that likely tokens do not run ahead. Equal to PPO if
    r = 1.
    """

    eps_low: NotNegative = 0.2
    """Width of the clip range below 1, used if A < 0."""
    eps_high: NotNegative = 0.2
    """Width of the clip range above 1, used if A > 0."""
    dual_clip: Annotated[Number, "(1, inf]"] = 3.0
    """Upper limit of the factor min(v, dual_clip), for either sign of A."""
    source: ClassVar = "Wang et al. 2025 (ASPO)"
    quadrants: ClassVar = ("I", "II", "III")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, self.dual_clip

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        ratio = importance_ratio(s.frozen, s.old_logp)
        factor = torch.where(s.direction > 0, 1 / ratio, ratio)
        factor = factor if s.dual_clip is None else factor.clamp(max=s.dual_clip)
        moving = log_ratio(logp, s.frozen).exp().where(~self.stopped(s.frozen, s), 1.0)
        return -s.advantage * factor * moving

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return beyond_bounds(logp, replace(s, dual_clip=None))


@register("sapo")
@dataclass(kw_only=True)
class SAPO(SurrogateController):
    """−A·(4/τ)·sigmoid(τ(r − 1)), τ = tau_positive for A > 0 and tau_negative for A < 0.

    At r = 1 the gradient equals PPO's; away from 1 it fades instead of stopping. Averages within sequences, then over
    them, as the paper, verl (compute_policy_loss_sapo) and TRL do.
    """

    aggregation: Aggregation = "seq-mean-token-mean"
    tau_positive: Positive = 1.0
    """τ if A > 0."""
    tau_negative: Positive = 1.05
    """τ if A < 0; a larger value fades the gradient faster."""
    source: ClassVar = "Gao et al. 2025 (SAPO)"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        assert s.old_logp is not None
        tau = torch.where(s.direction > 0, column(self.tau_positive, logp), column(self.tau_negative, logp))
        ratio = importance_ratio(logp, s.old_logp)
        return -s.advantage * (4 / tau) * torch.sigmoid(tau * (ratio - 1))

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return never(logp, s)
