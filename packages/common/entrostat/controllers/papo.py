"""Advantages reweighted by the sign of the entropy change that each token causes."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from .. import entropy_change
from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Positive, Share


@register("papo")
@dataclass(kw_only=True)
class Papo(Controller):
    """Weight 1 + gamma·u on tokens that raise the entropy, 1 − gamma·u on those that lower it.

    u = (target − Ĥ)/band within [−1, 1] follows the entropy. Polarity-aware policy optimization: a token's polarity is
    the sign of its first-order entropy change, the part of the sampled token and a correction of its distribution. From
    the paper: that polarity, weights on the advantages of both kinds of tokens, the measured entropy as the signal that
    shifts them. Its weights and its use of the signal could not be found: gamma, band, target and u are ours.
    """

    target: NotNegative = 0.3
    """Target entropy (nats). Ours."""
    band: Positive = 0.1
    """Distance of the entropy from the target at which u is ±1 (nats). Ours."""
    gamma: Share = 0.5
    """Largest change of a weight; below 1 no token is dropped. Ours."""
    estimator: Literal["exact", "sampled"] = "exact"
    """Entropy change: exact, or sampled, the part −A·p(log p + H) of the sampled token alone."""
    source: ClassVar = "Zhang et al. 2026 (Entropy Polarity, arXiv 2605.11775), PAPO"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = ("pressure",)
    controls = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pressure = as_state(0.0)
        """u of the next plans."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy", *(("s2", "s2l") if self.estimator == "exact" else ())})

    def observe(self, stats: StepStats) -> None:
        entropy = reading(stats.entropy)
        moved = ((as_state(self.target) - entropy) / as_state(self.band)).clamp(-1, 1)
        self.pressure = torch.where(entropy.isnan(), self.pressure, moved)

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, advantage = context.tokens, context.tokens.advantage
        logp, entropy = tokens.get("logp"), tokens.get("entropy")
        if self.estimator == "exact":
            flow = entropy_change.exact(logp, entropy, tokens.get("s2"), tokens.get("s2l"), advantage)
        else:
            flow = -advantage * (logp + entropy)
        polarity = flow.nan_to_num(nan=0.0).sign()
        raising = context.share((polarity > 0).expand(advantage.shape))
        factor = 1 + column(as_state(self.gamma) * self.pressure, advantage) * polarity
        return plan.reweight(factor, **{"papo/raising": raising})
