"""A closed loop on the upper bound of the importance ratio."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch

from ..controller import StepStats, as_reading, as_state
from ..hyperparameters import NotNegative, Number
from ..registry import register
from .base import ClippedRatio


@register("adaptive_clip")
@dataclass(kw_only=True)
class AdaptiveClip(ClippedRatio):
    """PPO in [1 − eps, 1/(1 − eps) + k]; k += delta where Ĥ < target and −= delta above, kept within [0, k_max].

    A wider upper bound lets unlikely tokens with A > 0 grow, which raises the entropy. At k = 0 the bounds are alike in
    log r, and the loop can give way no further: targets between what k = 0 and k_max leave can be held.
    """

    target: NotNegative = 0.3
    """Entropy to hold (nats)."""
    eps: Annotated[Number, "[0, 1)"] = 0.6
    """How far below 1 the ratio may fall where A < 0."""
    delta: NotNegative = 0.25
    """Step of k in one rollout step."""
    k_max: NotNegative = 2.5
    """Upper bound of k."""
    dual_clip: Annotated[Number, "(1, inf]"] = 50.0
    """Upper bound of the ratio where A < 0 (the outer ratio clip); inf is none."""
    source: ClassVar = "Microsoft AI 2026 (MAI-Thinking-1), adaptive entropy control and outer ratio clip"
    quadrants: ClassVar[tuple[str, ...]] = ("II", "III")
    state: ClassVar = ("k",)
    controls = "clip"
    idle_on_policy: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.k = as_state(0.0)

    def observe(self, stats: StepStats) -> None:
        error = as_state(self.target) - as_reading(stats.entropy)
        moved = self.k + as_state(self.delta) * torch.nan_to_num(error, nan=0.0).sign()
        self.k = moved.clamp(min=as_state(0.0), max=as_state(self.k_max))

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps, 1 / (1 - self.eps) + self.k, self.dual_clip
