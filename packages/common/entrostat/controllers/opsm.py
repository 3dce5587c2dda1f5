"""Off-policy sequence masking: bad responses that the policy has already moved away from are left out."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..controller import Context, Controller
from ..numbers.kl import log_ratio
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative


@register("opsm")
@dataclass(kw_only=True)
class Opsm(Controller):
    """Drop the tokens with A < 0 of a response whose mean of log π_sampler − log π exceeds delta.

    That mean estimates the divergence of the policy from the one that sampled. As in TRL (get_off_policy_mask) and
    slime (compute_opsm_mask). No published value is common: slime has 1e-4 by default, TRL's example is 0.5.
    """

    delta: NotNegative = 1e-4
    """Upper limit for the divergence of a response with A < 0 (nats per token)."""
    sampler: Literal["old", "rollout"] = "old"
    """Policy that the divergence is measured from: old, the trainer's before the update, or rollout, the engine's."""
    source: ClassVar = "DeepSeek-AI 2025 (DeepSeek-V3.2), equation 9; TRL; slime"
    quadrants: ClassVar = ("III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", f"{self.sampler}_logp", "seq_id"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses = context.tokens, context.sequences
        gap = log_ratio(tokens.get(f"{self.sampler}_logp"), tokens.get("logp"))
        divergence = responses.spread(responses.mean(gap.expand(tokens.advantage.shape)))
        dropped = (tokens.advantage < 0) & (divergence > column(self.delta, divergence))
        return plan.drop(dropped, **{"opsm/dropped": context.share(dropped)})
