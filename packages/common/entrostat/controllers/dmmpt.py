"""Dynamic masking of well-mastered positive tokens."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller, column
from ..plan import Plan
from ..registry import register
from .one_sign import share


@register("dmmpt")
@dataclass(kw_only=True)
class Dmmpt(Controller):
    """Drop tokens of responses with R ≥ 1 whose p > tau when the mean H of their response is below entropy_low."""

    tau: float | Tensor = 0.99
    """Probability from which a token counts as mastered."""
    entropy_low: float | Tensor = 0.2
    """Mean entropy of a response (nats) below which its mastered tokens are dropped."""
    source: ClassVar = "Du et al. 2025, dynamic masking of well-mastered positive tokens"
    quadrants: ClassVar = ("I",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require((torch.as_tensor(self.tau) > 0) & (torch.as_tensor(self.tau) <= 1), "tau must lie in (0, 1]")
        self._require_between("entropy_low", 0)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy", "reward", "seq_id"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses = context.tokens, context.sequences
        mean = responses.mean(tokens.get("entropy"))
        sure = responses.spread(mean < column(self.entropy_low, mean))
        logp = tokens.get("logp")
        dropped = (tokens.get("reward") >= 1) & (logp > column(self.tau, logp).log()) & sure
        return plan.drop(dropped, **{"dmmpt/dropped": share(dropped, context)})
