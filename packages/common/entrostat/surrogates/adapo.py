"""Upper clip distance that is multiplied or divided until the entropy is on target."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar

import torch

from ..controller import StepStats
from ..numbers.per_run import as_state, reading
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive
from .base import ClippedRatio


@register("adapo")
@dataclass(kw_only=True)
class Adapo(ClippedRatio):
    """PPO in [1 − eps_low, 1 + E]; E, at first eps_high, is multiplied by `factor` if Ĥ < target and divided if above.

    Adaptive asymmetric clipping: a wider upper bound lets unlikely tokens with A > 0 grow, which raises the entropy.
    From the paper: E of DAPO rises while the entropy is below the initial one and falls while it is above, in each
    rollout step. Its step and limits could not be found: `factor`, eps_min and eps_max are ours, after the doubling and
    halving in `repo_r`, of the same paper. `adapo+repo_r` has both, with one target for each.
    """

    target: NotNegative = 0.3
    """Target entropy (nats). The presets have the paper's, the entropy of the first rollout: 1x."""
    eps_low: NotNegative = 0.2
    """Width of the clip range below 1, used if A < 0."""
    eps_high: Positive = 0.28
    """Initial width of the clip range above 1, used if A > 0."""
    factor: Annotated[Number, "(1, inf)"] = 1.3
    """Factor of E in one rollout step. Ours."""
    eps_min: Positive = 0.01
    """Lower limit of E. Ours."""
    eps_max: Positive = 3.0
    """Upper limit of E. Ours."""
    dual_clip: Annotated[Number, "(1, inf]"] = inf
    """Upper bound of the ratio if A < 0; inf disables it."""
    presets: ClassVar = {"paper": {"target": "1x"}, "released": {"target": "1x"}}
    source: ClassVar = "Petrenko et al. 2026 (Entropy-Preserving Reinforcement Learning, arXiv 2603.11682), ADAPO"
    quadrants: ClassVar[tuple[str, ...]] = ("II", "III")
    state: ClassVar = ("width",)
    initial_only: ClassVar = ("eps_high",)
    controls = "clip"
    idle_on_policy: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ordered = torch.as_tensor(self.eps_min <= self.eps_high) & torch.as_tensor(self.eps_high <= self.eps_max)
        self._require(ordered, "eps_high must lie between eps_min and eps_max")
        self.width = as_state(self.eps_high)
        """E of the next plans."""

    def observe(self, stats: StepStats) -> None:
        error = torch.nan_to_num(as_state(self.target) - reading(stats.entropy), nan=0.0)
        moved = self.width * as_state(self.factor) ** error.sign()
        self.width = moved.clamp(min=as_state(self.eps_min), max=as_state(self.eps_max))

    def ratio_bounds(self) -> tuple[Any, Any, Any]:
        return 1 - self.eps_low, 1 + self.width, self.dual_clip
