"""PPO and its relatives: the importance ratio is clipped, and a clipped token has no gradient."""

from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, Any, ClassVar

import torch

from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number
from ..tokens import Tokens
from .base import ClippedRatio


@register("ppo")
@dataclass(kw_only=True)
class PPO(ClippedRatio):
    """max(−rA, −clip(r, 1−eps_low, 1+eps_high)·A); for A < 0 at most −dual_clip·A. PPO; GRPO's objective.

    The papers' objectives have no dual clip; their released scripts use c = 10. The upper bound stops tokens that were
    unlikely, the lower bound stops tokens that were even less likely, so a wider upper bound raises the entropy and a
    wider lower bound lowers it.
    """

    eps_low: NotNegative = 0.2
    """Width of the clip range below 1, used if A < 0."""
    eps_high: NotNegative = 0.2
    """Width of the clip range above 1, used if A > 0."""
    dual_clip: Annotated[Number, "(1, inf]"] = inf
    """Upper bound of the ratio if A < 0; inf disables it."""
    presets: ClassVar = {"paper": {}, "released": {"dual_clip": 10.0}}
    source: ClassVar = "Schulman et al. 2017, equation 7 (PPO); Shao et al. 2024, equation 3 (GRPO); Ye et al. 2020"
    quadrants: ClassVar[tuple[str, ...]] = ("II", "III")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.eps_high, self.dual_clip


@register("clip_higher")
@dataclass(kw_only=True)
class ClipHigher(PPO):
    """PPO with clip 0.2 / 0.28 (DAPO).

    Raises the entropy above that of plain clipping.
    """

    eps_high: NotNegative = 0.28
    source: ClassVar = "Yu et al. 2025 (DAPO), section 3.1; Revisiting Entropy, figure 3"
    quadrants: ClassVar = ("II",)


@register("clip_lower")
@dataclass(kw_only=True)
class ClipLower(PPO):
    """PPO with clip 0.28 / 0.2 (Revisiting Entropy, figure 3).

    Lowers the entropy below that of plain clipping.
    """

    eps_low: NotNegative = 0.28
    source: ClassVar = "Revisiting Entropy, figure 3"
    quadrants: ClassVar = ("III",)


@register("clip_tighter")
@dataclass(kw_only=True)
class ClipTighter(PPO):
    """PPO with clip 0.12 / 0.2 (Revisiting Entropy, figure 3).

    Raises the entropy above that of plain clipping.
    """

    eps_low: NotNegative = 0.12
    source: ClassVar = "Revisiting Entropy, figure 3"
    quadrants: ClassVar = ("III",)


@register("clip_free")
@dataclass(kw_only=True)
class ClipFree(ClippedRatio):
    """−rA with no clip and no dual clip (Revisiting Entropy, figure 3)."""

    source: ClassVar = "Revisiting Entropy, figure 3"
    quadrants: ClassVar = ("II", "III")


@register("dcpo")
@dataclass(kw_only=True)
class DCPO(ClippedRatio):
    """PPO between [½ + ½√max(1 − 4·eps_low/q, 0), min(½ + ½√(1 + 4·eps_high/q), ratio_max)], q = π_old of the token.

    The rarer a token was, the wider are its bounds, so that unlikely tokens are rarely stopped. Implements only the
    clipping of DCPO; its standardisation of advantages over training steps is not part of a loss. The released code
    (compute_policy_loss_dcpo, clip_type dynamic) always has a dual clip, 10 in its recipe. The distribution-centric
    DCPO of Li et al. (arXiv 2601.12730) is `arbitrary_entropy`.
    """

    eps_low: NotNegative = 0.16
    """ε of the lower bound."""
    eps_high: NotNegative = 0.2
    """ε of the upper bound."""
    ratio_max: Annotated[Number, "(1, inf]"] = 10.0
    """Upper limit of the upper bound; inf disables it."""
    dual_clip: Annotated[Number, "(1, inf]"] = inf
    """Upper bound of the ratio if A < 0; inf disables it."""
    presets: ClassVar = {"paper": {}, "released": {"eps_low": 0.2, "eps_high": 0.28, "dual_clip": 10.0}}
    source: ClassVar = "Yang et al. 2025 (DCPO), dynamic-adaptive clipping, and its released code"
    quadrants: ClassVar = ("II", "III")

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 0.0, inf, self.dual_clip

    def start(self, tokens: Tokens) -> Plan:
        old_logp = tokens.get("old_logp")
        rarity = (4 * (-old_logp).exp()).clamp(max=torch.finfo(old_logp.dtype).max)  # finite: ε may be 0
        low = (1 + (1 - column(self.eps_low, old_logp) * rarity).clamp(min=0).sqrt()) / 2
        high = (1 + (1 + column(self.eps_high, old_logp) * rarity).sqrt()) / 2
        high = torch.minimum(high, column(self.ratio_max, old_logp))
        return replace(super().start(tokens), clip_low=low, clip_high=high)
