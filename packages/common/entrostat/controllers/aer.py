"""Entropy bonus on difficult prompts, with a coefficient that moves towards a share of the initial entropy."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("aer")
@dataclass(kw_only=True)
class Aer(Controller):
    """−c·d·H, d = max(1 − R̄/rho, 0) the difficulty of the prompt; c += delta if Ĥ < target, −= delta if above.

    R̄ is the mean reward of the prompt's responses, meant to be 0 to 1; c stays within [0, coef_max]. Adaptive entropy
    regularization. From the paper: a bonus that depends on the difficulty of the prompt, a target of 0.4 times the
    initial entropy, a global coefficient that moves towards it. Its formulas could not be found: d, a threshold rho of
    1, and the steps of c, those of `adaptive_entropy`, are ours. A whole group must be in one mini-batch and on one
    rank.
    """

    target: NotNegative = 0.3
    """Target entropy (nats). The presets have the paper's, 0.4 times the entropy of the first rollout: 0.4x."""
    rho: Annotated[Number, "(0, inf)"] = 1.0
    """Mean reward of a prompt from which on it gets no bonus. Ours."""
    delta: NotNegative = 1e-4
    """Step of the coefficient in one rollout step. Ours."""
    coef_max: NotNegative = 0.005
    """Upper limit of the coefficient. Ours."""
    presets: ClassVar = {"paper": {"target": "0.4x"}, "released": {"target": "0.4x"}}
    source: ClassVar = "Zhang et al. 2025 (Adaptive Entropy Regularization, arXiv 2510.10959)"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = ("coef",)
    controls = "bonus"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.coef = as_state(0.0)
        """c of the next plans."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy", "reward", "group_id", "seq_id"})

    def observe(self, stats: StepStats) -> None:
        error = torch.nan_to_num(as_state(self.target) - reading(stats.entropy), nan=0.0)
        self.coef = (self.coef + as_state(self.delta) * error.sign()).clamp(
            min=as_state(0), max=as_state(self.coef_max)
        )

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, responses, groups = context.tokens, context.sequences, context.groups
        advantage = tokens.advantage
        reward = responses.pick(tokens.get("reward").to(advantage.dtype).expand(advantage.shape))
        mean = groups.mean(reward)
        difficulty = (1 - mean / column(self.rho, mean)).clamp(min=0)
        bonus = column(self.coef, advantage) * responses.spread(groups.spread(difficulty))
        return plan.add_entropy_bonus(bonus, **{"aer/difficulty": difficulty.mean(-1)})
