"""Clip bounds that depend on the token's probability and move with the progress of training."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from ..controller import StepStats
from ..numbers.per_run import as_state, column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import Number, Share
from ..tokens import Tokens
from .base import ClippedRatio


@register("flexible_clip")
@dataclass(kw_only=True)
class FlexibleClip(ClippedRatio):
    """PPO in [1 − e, 1 + E], E = u·(upper_slope·p + upper_start) + (1 − u)·eps, e with v and the `lower` numbers.

    p is the current probability, so r ≤ 1 + a·p + b is r ≤ (1 + b)/(1 − a·p_old), and r ≥ 1 − a·p − b is
    r ≥ (1 − b)/(1 + a·p_old): bounds are wider for unlikely tokens. A wide upper bound raises the entropy, a wide lower
    bound lowers it. With x the share of the training that is done:
    id (increase, decrease): u = 1 − 2x, v = 0 in the first half, u = 0, v = 2 − 2x in the second.
    did (decrease, increase, decrease): u = 2x, v = 0 in the first half, u = 1, v = 2 − 2x in the second.
    wide_upper: u = 1, v = 0. wide_lower: u = 0, v = 1. The paper's third strategy, oscillatory decay, is not included.
    """

    variant: Literal["id", "did", "wide_upper", "wide_lower"] = "id"
    """Strategy: id, did, wide_upper or wide_lower."""
    eps: Share = 0.2
    """Distance from 1 of a bound that is not widened."""
    upper_slope: Annotated[Number, "(-inf, 0]"] = -0.25
    """Slope of the upper distance in p."""
    upper_start: Share = 0.5
    """Upper distance at p = 0."""
    lower_slope: Annotated[Number, "(-1, 0]"] = -0.13
    """Slope of the lower distance in p."""
    lower_start: Share = 0.3
    """Lower distance at p = 0."""
    source: ClassVar = (
        "Chen et al. 2026 (Flexible Entropy Control, arXiv 2602.09782), as its first author describes it, "
        "posts/2026/03/flexible-entropy; slopes and starts as FLEXEC_UPPER_SLOPE etc. of a released training script"
    )
    quadrants: ClassVar = ("II", "III")
    state: ClassVar = ("upper", "lower")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.upper, self.lower = as_state(0.0), as_state(0.0)
        """Weights u and v of the widened bounds."""
        self._set(0.0)

    def _set(self, done: float) -> None:
        """Set u and v for the share of the training that is done."""
        first = done <= 0.5
        upper, lower = {
            "id": (1 - 2 * done if first else 0.0, 0.0 if first else 2 - 2 * done),
            "did": (2 * done if first else 1.0, 0.0 if first else 2 - 2 * done),
            "wide_upper": (1.0, 0.0),
            "wide_lower": (0.0, 1.0),
        }[self.variant]
        self.upper, self.lower = as_state(upper), as_state(lower)

    def observe(self, stats: StepStats) -> None:
        if self.variant in ("id", "did"):
            if stats.total_steps is None:
                raise ValueError(f"flexible_clip: variant {self.variant!r} needs StepStats.total_steps")
            self._set(min((stats.step or 0) / max(stats.total_steps, 1), 1.0))

    def start(self, tokens: Tokens) -> Plan:
        old = tokens.get("old_logp").exp()
        u, v, eps = column(self.upper, old), column(self.lower, old), column(self.eps, old)
        above = u * column(self.upper_start, old) + (1 - u) * eps
        below = v * column(self.lower_start, old) + (1 - v) * eps
        high = (1 + above) / (1 - u * column(self.upper_slope, old) * old)
        low = (1 - below) / (1 + v * column(self.lower_slope, old) * old)
        return replace(super().start(tokens), clip_low=low, clip_high=high)
