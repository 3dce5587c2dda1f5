"""Closed loop on the upper bound of the importance ratio."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch

from ..controller import StepStats
from ..numbers.per_run import as_state, reading
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number
from .base import ClippedRatio


@register("adaptive_clip")
@dataclass(kw_only=True)
class AdaptiveClip(ClippedRatio):
    """PPO in [1 − eps, 1/(1 − eps) + k]; k += delta if Ĥ < target and −= delta if above, kept within [0, k_max].

    A wider upper bound lets unlikely tokens with A > 0 grow, which raises the entropy. At k = 0 the bounds are
    symmetric in log r, and k cannot fall further. A target can be reached if it is between the entropies at k = 0 and
    at k_max.
    """

    target: NotNegative = 0.3
    """Target entropy (nats)."""
    eps: Annotated[Number, "[0, 1)"] = 0.6
    """Width of the clip range below 1, used if A < 0."""
    delta: NotNegative = 0.25
    """Step of k in one rollout step."""
    k_max: NotNegative = 2.5
    """Upper bound of k."""
    dual_clip: Annotated[Number, "(1, inf]"] = 50.0
    """Upper bound of the ratio if A < 0 (the outer ratio clip); inf disables it."""
    source: ClassVar = "Microsoft AI 2026 (MAI-Thinking-1), adaptive entropy control and outer ratio clip"
    quadrants: ClassVar[tuple[str, ...]] = ("II", "III")
    state: ClassVar = ("k",)
    controls = "clip"
    idle_on_policy: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.k = as_state(0.0)

    def observe(self, stats: StepStats) -> None:
        error = as_state(self.target) - reading(stats.entropy)
        moved = self.k + as_state(self.delta) * torch.nan_to_num(error, nan=0.0).sign()
        self.k = moved.clamp(min=as_state(0.0), max=as_state(self.k_max))

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps, 1 / (1 - self.eps) + self.k, self.dual_clip
