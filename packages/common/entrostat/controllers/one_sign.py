"""Learning from one sign of the advantage only."""

from dataclasses import dataclass
from typing import ClassVar

from ..controller import Context, Controller
from ..plan import Plan
from ..registry import register


@register("positive_only")
@dataclass(kw_only=True)
class PositiveOnly(Controller):
    """Weight 1[A ≥ 0]: tokens with A < 0 are dropped.

    Lowers the entropy if samples are reused under a ratio clip. Strictly on-policy with binary rewards it only
    rescales the expected step, so the entropy moves in the same direction as without it.
    """

    source: ClassVar = "Revisiting Entropy, figure 5; STEER, figure 3; Zhu et al. 2025 (PSR)"
    quadrants: ClassVar = ("III", "IV")

    def transform(self, plan: Plan, context: Context) -> Plan:
        dropped = context.tokens.advantage < 0
        return plan.drop(dropped, **{"positive_only/dropped": context.share(dropped)})


@register("negative_only")
@dataclass(kw_only=True)
class NegativeOnly(Controller):
    """Weight 1[A ≤ 0]: tokens with A > 0 are dropped.

    Raises the entropy if samples are reused under a ratio clip. Strictly on-policy with binary rewards it only
    rescales the expected step, so the entropy moves in the same direction as without it.
    """

    source: ClassVar = "Revisiting Entropy, figure 5; STEER, figure 3; Zhu et al. 2025 (NSR)"
    quadrants: ClassVar = ("I", "II")

    def transform(self, plan: Plan, context: Context) -> Plan:
        dropped = context.tokens.advantage > 0
        return plan.drop(dropped, **{"negative_only/dropped": context.share(dropped)})
