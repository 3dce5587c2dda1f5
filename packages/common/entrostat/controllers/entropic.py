"""EntroPIC: proportional-integral control of the entropy through the weights of likely tokens."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller, StepStats, as_state, column
from ..plan import Plan
from ..registry import register


@register("entropic")
@dataclass(kw_only=True)
class Entropic(Controller):
    """α = clip(kp·e + ki·Σe, ±alpha_max) with e = Ĥ − target; tokens with p > tau weigh 1 + α (A > 0), 1 − α (A < 0).

    EntroPIC, section 4: positive α lowers the entropy. tau = 0 acts on all tokens; ki = 0 is P control. With
    anti-windup the sum stops while α is saturated and the error would drive it further; the released code has none.
    tau must lie below the probabilities that likely tokens have at the target, or there is nothing to act on.
    """

    target: float | Tensor = 0.1
    kp: float | Tensor = 1.0
    ki: float | Tensor = 0.01
    tau: float | Tensor = 0.95
    alpha_max: float | Tensor = 1.0
    anti_windup: bool = True
    presets: ClassVar = {"paper": {}, "released": {"anti_windup": False}}
    state: ClassVar = ("integral", "alpha")

    def __post_init__(self) -> None:
        self._require((torch.as_tensor(self.tau) >= 0) & (torch.as_tensor(self.tau) < 1), "tau must lie in [0, 1)")
        self._require(torch.as_tensor(self.alpha_max) > 0, "alpha_max must be positive")
        self.integral = as_state(0.0)
        self.alpha = as_state(0.0)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def observe(self, stats: StepStats) -> None:
        error = as_state(stats.entropy) - self.target
        known = ~error.isnan()
        integral = self.integral + error
        wanted = self.kp * error + self.ki * integral
        if self.anti_windup:
            winding = (wanted.abs() > self.alpha_max) & (wanted * error > 0)
            integral = torch.where(winding, self.integral, integral)
        limit = as_state(self.alpha_max)
        alpha = (self.kp * error + self.ki * integral).clamp(min=-limit, max=limit)
        self.integral = torch.where(known, integral, self.integral)
        self.alpha = torch.where(known, alpha, self.alpha)

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        likely = context.tokens.get("logp").exp() > column(self.tau, advantage)
        alpha = column(self.alpha, advantage)
        factor = torch.where(likely, 1 + alpha * advantage.sign(), 1.0)
        return plan.reweight(factor)
