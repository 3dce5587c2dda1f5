"""EntroPIC: proportional-integral control of the entropy through the weights of likely tokens."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller, StepStats
from ..numbers.kl import log_ratio
from ..numbers.per_run import as_state, column, reading
from ..numbers.pi_control import place_poles
from ..numbers.plant import Plant
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number

PRIOR_GAIN = 0.1
"""Initial plant gain of `auto`: fall of entropy in a rollout step per unit of α (nats). Too high is the safe side."""
FORGETTING = 0.99
DRIFT_RATE = 0.1
"""Forgetting factor and drift rate of the plant that `auto` estimates, see `entrostat.numbers.plant`."""


@register("entropic")
@dataclass(kw_only=True)
class Entropic(Controller):
    """α = clip(kp·e + ki·Σe, ±alpha_max) with e = Ĥ − target; tokens with p > tau weigh 1 + α (A > 0), 1 − α (A < 0).

    EntroPIC, section 4: positive α lowers the entropy. tau = 0 acts on all tokens; ki = 0 is P control. With
    anti-windup the sum stops while α is saturated and the error would drive it further; the released code has none.
    tau must be below the probabilities of likely tokens at the target, otherwise it selects no tokens. Strictly
    on-policy with binary rewards, tau = 0 only scales the expected step and cannot change its direction.

    Beyond the paper: kd·(e − previous e) is added to α, `ema` smooths Ĥ, and `auto` estimates the effect of α on the
    entropy from the measurements, retunes kp and ki so that the loop has the poles of `numbers.pi_control`, and acts
    on tokens with p > e^(−target), which is below the largest probability of every state at the target.
    """

    target: NotNegative = 0.1
    """Target entropy (nats)."""
    kp: NotNegative = 1.0
    """Proportional gain, per nat. Not used with `auto`."""
    ki: NotNegative = 0.01
    """Integral gain, per nat and rollout step. Not used with `auto`."""
    kd: NotNegative = 0.0
    """Derivative gain, rollout steps per nat."""
    ema: Annotated[Number, "[0, 1)"] = 0.0
    """Weight of the past in the smoothed Ĥ; 0 disables smoothing."""
    tau: Annotated[Number, "[0, 1)"] = 0.95
    """Probability above which tokens are reweighted. Not used with `auto`, unless `auto_tau` is off."""
    alpha_max: Annotated[Number, "(0, inf]"] = 1.0
    """Upper limit of |α|; inf disables it. Above 1, weights can be negative."""
    anti_windup: bool = True
    """Stop the sum while α is saturated."""
    auto: bool = False
    """Set kp and ki from measurements."""
    auto_tau: bool = True
    """Use e^(−target) as tau with `auto`."""
    source: ClassVar = "EntroPIC, section 4"
    quadrants: ClassVar = ("I", "IV")
    presets: ClassVar = {"paper": {}, "released": {"anti_windup": False}}
    state: ClassVar = ("integral", "alpha", "smoothed", "error")
    controls = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.integral = as_state(0.0)
        self.alpha = as_state(0.0)
        self.smoothed = as_state(0.0)
        self.error = as_state(0.0)
        self.started = torch.tensor(False)
        self.plant = Plant.prior(PRIOR_GAIN)

    @property
    def log_tau(self) -> Tensor:
        """log tau, (...,), float64."""
        return -as_state(self.target) if self.auto and self.auto_tau else as_state(self.tau).log()

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp"})

    def observe(self, stats: StepStats) -> None:
        entropy = reading(stats.entropy)
        known = ~entropy.isnan()
        smoothed = torch.where(self.started, self.ema * self.smoothed + (1 - as_state(self.ema)) * entropy, entropy)
        kp, ki, integral = as_state(self.kp), as_state(self.ki), self.integral
        if self.auto:
            before = place_poles(self.plant.gain)
            self.plant = self.plant.observe(entropy, -self.alpha, forgetting=FORGETTING, drift_rate=DRIFT_RATE)
            kp, ki = place_poles(self.plant.gain)
            integral = integral * (before.ki / ki)  # keeps the sum's contribution to α
        error = smoothed - self.target
        change = self.kd * torch.where(self.started, error - self.error, 0.0)
        summed = integral + error
        wanted = kp * error + ki * summed + change
        if self.anti_windup:
            winding = (wanted.abs() > self.alpha_max) & (wanted * error > 0)
            summed = torch.where(winding, integral, summed)
        limit = as_state(self.alpha_max)
        alpha = (kp * error + ki * summed + change).clamp(min=-limit, max=limit)
        self.integral = torch.where(known, summed, self.integral)
        self.alpha = torch.where(known, alpha, self.alpha)
        self.smoothed = torch.where(known, smoothed, self.smoothed)
        self.error = torch.where(known, error, self.error)
        self.started = self.started | known

    def transform(self, plan: Plan, context: Context) -> Plan:
        advantage = context.tokens.advantage
        likely = log_ratio(context.tokens.get("logp"), column(self.log_tau, advantage)).sign_().clamp_(min=0)  # 1 or 0
        signed = advantage.sign() * likely
        return plan.reweight(torch.addcmul(column(1.0, advantage), signed, column(self.alpha, advantage)))

    def metrics(self) -> dict[str, Tensor]:
        found = {"entropic/integral": self.integral, "entropic/alpha": self.alpha}
        if not self.auto:
            return found
        gains = place_poles(self.plant.gain)
        return {**found, "entropic/plant_gain": self.plant.gain, "entropic/kp": gains.kp, "entropic/ki": gains.ki}

    def _kept(self) -> tuple[str, ...]:
        return (*self.state, "started", *(f"plant_{name}" for name in Plant._fields if self.auto))

    def state_dict(self) -> dict[str, Any]:
        plant = {f"plant_{name}": value for name, value in self.plant._asdict().items()} if self.auto else {}
        names = (*self.state, "started")
        return {key: value.clone() for key, value in {**{n: getattr(self, n) for n in names}, **plant}.items()}

    def _restore(self, state: dict[str, Tensor]) -> None:
        if self.auto:
            self.plant = Plant(**{name: state.pop(f"plant_{name}") for name in Plant._fields})
        super()._restore(state)
