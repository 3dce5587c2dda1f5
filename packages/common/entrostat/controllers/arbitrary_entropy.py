"""Correct responses learned at a higher or lower temperature, by the side of the target that the entropy is on."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..numbers.support import Support
from ..plan import Plan, importance_ratio
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive


@register("arbitrary_entropy")
@dataclass(kw_only=True)
class ArbitraryEntropy(Controller):
    """Advantage (1 − α)·A + α·c·π_T/π_old, c = 1 for a correct response and 0 otherwise; T high below the target.

    The second term is REINFORCE on correct responses, weighted per token so that they stand for samples drawn at
    temperature T: it pulls the policy towards a hotter one if Ĥ ≤ target and towards a colder one above. α = a/(1 + a),
    a = min(|target − Ĥ|, gap_max) divided by the share of correct responses in the mini-batch; 0 if there are none.
    The regularizer is that of SCOPE-RL (Wang et al.), which was called AEPO before version 7 of its paper. Its code
    draws responses at T to a quarter of the prompts and puts up to 60 of the correct ones in the place of samples, with
    A = 1. This form without a second rollout is the authors' next paper (Li et al.), there named DCPO; α is as
    released. Neither is the controller `aepo` (a band, QwenLong-L1.5) or the surrogate `dcpo` (dynamic clipping). In
    llmtrain T follows the entropy one rollout step later, as released.
    """

    target: NotNegative = 0.5
    """Target entropy (nats)."""
    temperature_high: Positive = 1.2
    """T if Ĥ ≤ target."""
    temperature_low: Positive = 0.8
    """T if Ĥ > target."""
    gap_max: NotNegative = 0.1
    """Upper limit for the distance from the target that counts (nats)."""
    correct: Number = 0.05
    """Reward above which a response is correct."""
    source: ClassVar = (
        "Wang et al. 2025 (SCOPE-RL, first called AEPO, arXiv 2510.08141), reweighted as by Li et al. 2026 (arXiv "
        "2601.12730) and RayPPOTrainer.fit of repository 597358816/DCPO"
    )
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = ("gap",)
    controls = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gap = as_state(0.0)
        """Target minus entropy of the rollout (nats)."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"old_logp", "proxy_logp", "reward", "seq_id"})

    @property
    def proxy(self) -> Support:
        high, low = as_state(self.temperature_high), as_state(self.temperature_low)
        return Support(temperature=torch.where(self.gap >= 0, high, low))

    def observe(self, stats: StepStats) -> None:
        error = as_state(self.target) - reading(stats.entropy)
        self.gap = torch.where(error.isnan(), self.gap, error)

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses, reduce = context.tokens, context.sequences, context.reduce
        advantage = tokens.advantage
        correct = tokens.get("reward").to(advantage.dtype).expand(advantage.shape) > column(self.correct, advantage)
        right = responses.pick(correct.to(advantage.dtype))
        share = reduce.sum(right) / reduce.sum(torch.ones_like(right)).clamp(min=1)
        size = torch.minimum(self.gap.abs(), as_state(self.gap_max)).to(share.device)
        alpha = torch.where(share > 0, size / (size + share), 0.0)
        factor = importance_ratio(tokens.get("proxy_logp"), tokens.get("old_logp"))
        part = column(alpha, advantage)
        mixed = (1 - part) * advantage + part * torch.where(correct, factor, 0.0)
        return plan.shape(mixed, **{"arbitrary_entropy/alpha": alpha})
