"""Importance weights from the rollout engine's policy to the trainer's."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch

from ..controller import Context, Controller, column
from ..hyperparameters import Number
from ..kl import log_ratio
from ..plan import Plan
from ..registry import register


@register("rollout_correction")
@dataclass(kw_only=True)
class RolloutCorrection(Controller):
    """Weight w = π_old(o)/π_rollout(o) of each token, or of its whole response, truncated at `cap`, or 0 above it.

    π_old is the policy before the update as the trainer computes it; π_rollout is the policy that the rollout engine
    sampled from, which differs by rounding, kernels and, in asynchronous training, by updates in between. The
    surrogate's importance ratio stays π/π_old. Put it before controllers that read weights, such as thermostat.
    """

    mode: Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] = "token_truncate"
    """Level and treatment of large weights: token_truncate, token_mask, sequence_truncate or sequence_mask."""
    cap: Annotated[Number, "(0, inf]"] = 2.0
    """Upper limit: larger weights become `cap` (truncate) or 0 (mask); inf disables it."""
    source: ClassVar = "Yao et al. 2025 (truncated importance sampling); IcePop (masking); Espeholt et al. 2018, eq. 1"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"old_logp", "rollout_logp"} | ({"seq_id"} if self.mode.startswith("sequence") else set()))

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens = context.tokens
        gap = log_ratio(tokens.get("old_logp"), tokens.get("rollout_logp"))
        if self.mode.startswith("sequence"):
            gap = context.sequences.spread(context.sequences.sum(gap))
        weight, cap = gap.exp(), column(self.cap, gap)
        beyond = weight > cap
        info = {"rollout_correction/beyond": context.share(beyond)}
        if self.mode.endswith("mask"):
            return plan.reweight(torch.where(beyond, 0.0, weight)).drop(beyond, **info)
        return plan.reweight(weight.minimum(cap), **info)
