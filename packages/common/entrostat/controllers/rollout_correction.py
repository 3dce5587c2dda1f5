"""Importance weights from the rollout engine's policy to the trainer's."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch

from ..controller import Context, Controller
from ..numbers.kl import log_ratio
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("rollout_correction")
@dataclass(kw_only=True)
class RolloutCorrection(Controller):
    """Weight w = π_old(o)/π_rollout(o) of a token or response, truncated to [`floor`, `cap`], or 0 outside of it.

    π_old is the policy before the update as the trainer computes it; π_rollout is the policy that the rollout engine
    sampled from, which differs by rounding, kernels and, in asynchronous training, by updates in between. The weight of
    a response is the product of those of its tokens (sequence) or their geometric mean (geometric). The surrogate's
    importance ratio stays π/π_old. Put it before controllers that read weights, such as thermostat. IcePop is
    mode=token_mask with floor=0.5 and cap=5, the released preset.
    """

    mode: Literal[
        "token_truncate",
        "token_mask",
        "sequence_truncate",
        "sequence_mask",
        "geometric_truncate",
        "geometric_mask",
    ] = "token_truncate"
    """Level of the weight and treatment outside the bounds: token_truncate, token_mask, sequence_truncate,
    sequence_mask, geometric_truncate or geometric_mask."""
    floor: NotNegative = 0.0
    """Lower limit: smaller weights become `floor` (truncate) or 0 (mask); 0 disables it."""
    cap: Annotated[Number, "(0, inf]"] = 2.0
    """Upper limit: larger weights become `cap` (truncate) or 0 (mask); inf disables it."""
    presets: ClassVar = {"paper": {}, "released": {"mode": "token_mask", "floor": 0.5, "cap": 5.0}}
    source: ClassVar = (
        "Yao et al. 2025 (truncated importance sampling); Ling Team 2025 (Ring-1T, IcePop); Espeholt et al. 2018, eq. 1"
    )
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.floor) <= torch.as_tensor(self.cap), "floor must not be above cap")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"old_logp", "rollout_logp"} | (set() if self.mode.startswith("token") else {"seq_id"}))

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens = context.tokens
        level, _, treatment = self.mode.partition("_")
        gap = log_ratio(tokens.get("old_logp"), tokens.get("rollout_logp"))
        if level != "token":
            responses = context.sequences
            gap = responses.spread(responses.sum(gap) if level == "sequence" else responses.mean(gap))
        weight, floor, cap = gap.exp(), column(self.floor, gap), column(self.cap, gap)
        above, below = weight > cap, weight < floor
        info = {"rollout_correction/beyond": context.share(above), "rollout_correction/below": context.share(below)}
        if treatment == "mask":
            return plan.reweight(torch.where(above | below, 0.0, weight)).drop(above | below, **info)
        return plan.reweight(weight.maximum(floor).minimum(cap), **info)
