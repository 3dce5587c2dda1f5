"""Advantages rescaled by log π of the token, with a factor that is doubled or halved towards a target entropy."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive


@register("repo_r")
@dataclass(kw_only=True)
class RepoR(Controller):
    """Weight max(1 − ζ·log π, 0) on tokens with A > 0, max(1 + ζ·log π, 0) on tokens with A < 0.

    With ζ > 0 unlikely tokens weigh more if A > 0 and less if A < 0, which raises the entropy. `adaptive` changes ζ in
    each rollout step, up if Ĥ < target and down otherwise: |ζ| doubles towards the wanted sign and halves away from it;
    a |ζ| that would fall below zeta_min takes the other sign at zeta_min. The paper's target is the initial entropy.
    """

    target: NotNegative = 0.3
    """Target entropy of `adaptive` (nats). Not published as a number; 0.3 is the one of SkyRL's example."""
    zeta: Number = 0.001
    """ζ, initially if `adaptive`. Negative values lower the entropy."""
    zeta_min: Positive = 1e-4
    """Lower limit of |ζ| with `adaptive`."""
    zeta_max: Positive = 0.05
    """Upper limit of |ζ| with `adaptive`."""
    adaptive: bool = True
    """Change ζ towards the target; if false it stays constant."""
    source: ClassVar = (
        "Petrenko et al. 2026 (Entropy-Preserving Reinforcement Learning, arXiv 2603.11682), REPO-R, appendix D.2; "
        "SkyRL, pull request 1896"
    )
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = ("current_zeta",)
    initial_only: ClassVar = ("zeta",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(torch.as_tensor(self.zeta_min <= self.zeta_max), "zeta_min must not exceed zeta_max")
        self.current_zeta = as_state(self.zeta)
        """ζ of the next plans."""

    @property
    def controls(self) -> str | None:
        return "weight" if self.adaptive else None

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def observe(self, stats: StepStats) -> None:
        if not self.adaptive:
            return
        entropy = reading(stats.entropy)
        wanted = torch.where(entropy < self.target, 1.0, -1.0).double()
        least, most = as_state(self.zeta_min), as_state(self.zeta_max)
        towards = self.current_zeta * wanted  # |ζ|, negative while ζ has the other sign
        halved = torch.where(towards / 2 > -least, least, towards / 2)
        doubled = torch.maximum(2 * towards, least)
        moved = wanted * torch.where(towards > 0, doubled, halved).clamp(min=-most, max=most)
        self.current_zeta = torch.where(entropy.isnan(), self.current_zeta, moved)

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage, logp = context.tokens.advantage, context.tokens.get("logp")
        known = torch.where(logp.isfinite(), logp, 0.0)  # the weight of a token without probability is 1
        return plan.reweight((1 - column(self.current_zeta, advantage) * advantage.sign() * known).clamp(min=0))
