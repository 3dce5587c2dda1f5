"""STEER's intervention: other weights for a share of the tokens of each quadrant of advantage and probability."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..numbers.quadrants import QUADRANTS, quadrant_masks
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Share


@register("quadrant_mask")
@dataclass(kw_only=True)
class QuadrantMask(Controller):
    """Weight of its quadrant on a random share of the tokens: 0 drops them, 1 leaves them, 2 doubles them.

    STEER, appendix C.3, changes one quadrant in a run: to raise the entropy it drops exploitation or suppression, or
    doubles exploration or correction, and the opposite to lower it.
    """

    exploitation: NotNegative = 0.0
    """Weight of quadrant I: A > 0, likely token."""
    exploration: NotNegative = 1.0
    """Weight of quadrant II: A > 0, unlikely token."""
    suppression: NotNegative = 1.0
    """Weight of quadrant III: A < 0, unlikely token."""
    correction: NotNegative = 1.0
    """Weight of quadrant IV: A < 0, likely token."""
    share: Share = 0.1
    """Share of a quadrant's tokens that get its weight."""
    boundary: Literal["probability", "entropy"] = "probability"
    """Bounds of the quadrants: probability, by likely and unlikely, or entropy, cut at p = e^(−H) (STEER, remark 3)."""
    likely: Share = 0.8
    """Probability above which a token is likely."""
    unlikely: Share = 0.2
    """Probability up to which a token is unlikely, at most `likely`; those in between are in no quadrant."""
    source: ClassVar = "STEER, figure 2 and appendix C.3"
    quadrants: ClassVar = tuple(QUADRANTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.unlikely <= self.likely), "unlikely must not be above likely")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy"} if self.boundary == "entropy" else {"logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage, logp = context.tokens.advantage, context.tokens.get("logp")
        if self.boundary == "entropy":
            likely = (logp > -context.tokens.get("entropy")).expand(advantage.shape)
            masks = quadrant_masks(advantage, likely)
        else:
            p = logp.exp()
            masks = quadrant_masks(advantage, p > column(self.likely, p), p <= column(self.unlikely, p))
        weight = torch.ones_like(advantage)
        for name, inside in masks.items():
            weight = torch.where(inside, column(getattr(self, name), weight), weight)
        drawn = context.uniform(self.name) < column(self.share, advantage)
        weight = torch.where(drawn, weight, 1.0)
        told = {f"{self.name}/changed": context.share(weight != 1)}
        return plan.reweight(weight).drop(weight == 0, **told)
