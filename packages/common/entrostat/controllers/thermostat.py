"""thermostat: the entropy bonus, or the token weights, that a wanted entropy asks for, solved in every update.

    observe   Ĥ, flow planned since the last Ĥ ──► Plant: filtered H, step size κ, drift d
    wanted    flow of one update = (clip(k·(target − H), ±rate) − d) / (κ · updates per rollout step)
    plan      mean φ_t + μ·mean F_t = wanted          ──► μ           (mode "bonus")
              mean m_t·φ_t = wanted                   ──► m_t         (mode "reweight")
              mean m_t·φ_t + μ·mean F_t = wanted      ──► m_t and μ   (mode "both")

docs/thermostat.md derives it and says what was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from .. import entropy_change
from ..controller import Context, Controller, StepStats, as_state, column
from ..plan import Plan
from ..plant import Plant
from ..registry import register
from ..water_level import water_level

MODES = ("bonus", "reweight", "both")
PRICES = ("gradient", "flow")


@register("thermostat")
@dataclass(kw_only=True)
class Thermostat(Controller):
    """Moves the mean entropy by clip(k·(target − H), ±rate) a rollout step, by a bonus or by weights that are solved.

    With φ_t the exact flow of token t under the plan made so far and F_t = S2LL + 2H·S2L + H²·S2 that of a unit bonus,
    mode="bonus" adds μ·H_t with μ = (wanted flow − mean φ)/mean F, the least change of the logit update that gives the
    wanted flow, within ±bonus_max (from 0 with one_sided). mode="reweight" gives weights
    m_t = clip(1 + ν·φ_t/g_t, 0, m_max), with ν such that mean m_t·φ_t is the wanted flow, at the price
    g_t = (∂loss/∂lp_t)² ("gradient": least change of the gradient) or |φ_t| ("flow": OPEFO's weights when target,
    gain and drift ask for no change). It dies with the advantages; a bonus does not. mode="both" moves weights and
    bonus with one ν: μ = bonus_share·ν, and g_t = (∂loss/∂lp_t)²·‖e − p‖², the squared step of the token's logits.

    κ, the change of entropy for a unit of summed flow (the learning rate for SGD on independent logits), starts at
    `kappa` and is estimated from what came of the flows planned before, with `forgetting`; so is a drift, whose speed
    is `integral`, that stands for all the flow does not explain: shared parameters, curvature, momentum.
    The truncated-entropy bonus of another part is not in φ; the drift takes it up.
    """

    target: float | Tensor = 0.5
    """Entropy to hold (nats)."""
    mode: str = "bonus"
    """bonus, reweight or both."""
    one_sided: bool = False
    """Whether a bonus is never negative: entropy above the target is then left to the task."""
    price: str = "gradient"
    """What a weight costs in mode reweight: gradient or flow."""
    bonus_share: float | Tensor = 0.1
    """Bonus for a unit of ν in mode both."""
    k: float | Tensor = 0.1
    """Part of the error that a rollout step is to remove."""
    rate: float | Tensor = 0.02
    """Most that a rollout step is to move the entropy (nats); inf is no limit."""
    bonus_max: float | Tensor = 1.0
    """Bound of |μ|."""
    m_max: float | Tensor = 2.0
    """Bound of the weights."""
    kappa: float | Tensor = 1.0
    """κ to start from; too high is the careful side."""
    integral: float | Tensor = 0.1
    """How far the drift moves in a step, relative to the change of entropy that stays unexplained."""
    forgetting: float | Tensor = 0.99
    """Factor by which information on κ fades in a step."""
    presets: ClassVar = {"paper": {}, "released": {}}
    source: ClassVar = "ours: docs/thermostat.md"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = (*Plant._fields, "updates")
    last: ClassVar = True
    unbounded: ClassVar = ("rate",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_between("target", 0)
        self._require(self.mode in MODES, f"mode must be one of {', '.join(MODES)}")
        self._require(self.price in PRICES, f"price must be one of {', '.join(PRICES)}")
        for name in ("rate", "bonus_max", "kappa", "bonus_share"):
            self._require(torch.as_tensor(getattr(self, name)) > 0, f"{name} must be positive")
        k, fading = torch.as_tensor(self.k), torch.as_tensor(self.forgetting)
        self._require((k > 0) & (k < 2), "k must lie in (0, 2), where the loop is stable")
        self._require((fading > 0) & (fading <= 1), "forgetting must lie in (0, 1]")
        self._require(torch.as_tensor(self.integral) >= 0, "integral must not be negative")
        self._require(torch.as_tensor(self.m_max) > 1, "m_max must be above 1")
        self.plant = Plant.prior(self.kappa)
        self.updates = as_state(1.0)
        """Plans in a rollout step, as they were counted in the last one."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "entropy", "s2", "s2l", "s2ll"})

    @property
    def controls(self) -> str:
        return "bonus" if self.mode == "bonus" else "weight"

    def observe(self, stats: StepStats) -> None:
        entropy = as_state(stats.entropy)
        flow, updates = (as_state(stats.planned.get(f"thermostat/{key}", 0.0)) for key in ("flow", "updates"))
        self.plant = self.plant.observe(entropy, flow, forgetting=self.forgetting, drift_rate=self.integral)
        self.updates = torch.where(~entropy.isnan() & (updates > 0), updates.to(self.updates), self.updates)

    def wanted_flow(self) -> Tensor:
        """The mean flow that one update should have, float64 (...,), nats per unit of κ; 0 before any observation."""
        error = torch.nan_to_num(as_state(self.target) - self.plant.entropy, nan=0.0)
        rate = as_state(self.rate)
        change = (self.k * error).clamp(min=-rate, max=rate) - self.plant.drift
        return change / (self.plant.gain * self.updates)

    def transform(self, plan: Plan, context: Context) -> Plan:
        acts = {"bonus": self._add_bonus, "reweight": self._reweight, "both": self._do_both}
        return acts[self.mode](plan, context)

    def _add_bonus(self, plan: Plan, context: Context) -> Plan:
        flow = planned_flow(plan, context)
        base, slope = context.reduce.mean(flow), context.reduce.mean(bonus_flow(context))
        limit = as_state(self.bonus_max).to(base)
        coef = (self.wanted_flow().to(base) - base) / slope
        coef = torch.where(slope > 0, coef, 0.0).clamp(min=0 * limit if self.one_sided else -limit, max=limit)
        info = {"thermostat/bonus": coef, **_info(base + coef * slope, base)}
        return plan.add_entropy_bonus(column(coef, flow), **info)

    def _reweight(self, plan: Plan, context: Context) -> Plan:
        dlogp, flow, fixed = _weighted_flow(plan, context)
        price = flow.abs() if self.price == "flow" else dlogp.square()
        wanted = self.wanted_flow().to(flow.device) - fixed
        solved = water_level(flow, price, wanted, as_state(self.m_max).to(wanted), context.reduce)
        info = {"thermostat/level": solved.level, **_info(solved.achieved + fixed, solved.base + fixed)}
        return plan.reweight(solved.weight, **info)

    def _do_both(self, plan: Plan, context: Context) -> Plan:
        t, reduce = context.tokens, context.reduce
        dlogp, flow, fixed = _weighted_flow(plan, context)
        price = dlogp.square() * squared_step(t.get("logp"), t.get("s2"))
        wanted = self.wanted_flow().to(flow.device) - fixed
        m_max, share, limit = (as_state(x).to(wanted) for x in (self.m_max, self.bonus_share, self.bonus_max))
        slope = reduce.mean(bonus_flow(context))
        if self.one_sided:
            share = torch.where(wanted > reduce.mean(flow), share, 0.0)
        solved = water_level(flow, price, wanted, m_max, reduce, linear=share * slope)
        coef = (share * solved.level).clamp(min=-limit, max=limit)
        achieved = solved.achieved + (coef - share * solved.level) * slope
        info = {"thermostat/level": solved.level, "thermostat/bonus": coef}
        info |= _info(achieved + fixed, solved.base + fixed)
        return plan.reweight(solved.weight).add_entropy_bonus(column(coef, flow), **info)

    def metrics(self) -> dict[str, Tensor]:
        return {
            "thermostat/kappa": self.plant.gain,
            "thermostat/drift": self.plant.drift,
            "thermostat/error": self.plant.entropy - self.target,
            "thermostat/wanted_flow": self.wanted_flow(),
        }

    def state_dict(self) -> dict[str, Any]:
        return {key: value.clone() for key, value in {**self.plant._asdict(), "updates": self.updates}.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if set(state) != set(self.state):
            raise ValueError(f"{self.name}: state has {sorted(state)}, expected {sorted(self.state)}")
        values = {key: torch.as_tensor(value).clone() for key, value in state.items()}
        self.updates = values.pop("updates")
        self.plant = Plant(**values)


def planned_flow(plan: Plan, context: Context) -> Tensor:
    """Entropy change of each token's own distribution under a plan, (..., N), nats per unit step and before `scale`.

    The exact first order of everything in the plan but a truncated-entropy bonus.
    """
    flow = _flow(_dlogp(plan, context), context)
    return flow if plan.entropy_coef is None else flow + plan.entropy_coef * bonus_flow(context)


def _weighted_flow(plan: Plan, context: Context) -> tuple[Tensor, Tensor, Tensor | float]:
    """∂loss/∂lp and flow of what a weight multiplies, (..., N) each, and the mean flow of the rest, (...,) or 0."""
    dlogp = _dlogp(replace(plan, entropy_coef=None, kl_coef=None, ref_coef=None), context)
    flow = _flow(dlogp, context)
    others = plan.entropy_coef is not None or plan.kl_coef is not None or plan.ref_coef is not None
    return dlogp, flow, context.reduce.mean(planned_flow(plan, context) - flow) if others else 0.0


def bonus_flow(context: Context) -> Tensor:
    """F = ‖∇_z H‖² = S2LL + 2H·S2L + H²·S2, (..., N): the flow of a unit of entropy bonus at each token."""
    t = context.tokens
    entropy = t.get("entropy")
    return (entropy * t.get("s2")).add_(t.get("s2l"), alpha=2).mul_(entropy).add_(t.get("s2ll"))


def squared_step(logp: Tensor, s2: Tensor) -> Tensor:
    """‖e_o − p‖² = 1 − 2p_o + S2 of each token, (..., N); at least (1 − p_o)², which rounding leaves where p_o → 1."""
    return torch.maximum(1 - 2 * logp.exp() + s2, torch.expm1(logp).square())


def _dlogp(plan: Plan, context: Context) -> Tensor:
    t = context.tokens
    shape = t.advantage.shape
    return plan.coefficients(t.get("logp").expand(shape), t.get("entropy").expand(shape))[0]


def _flow(dlogp: Tensor, context: Context) -> Tensor:
    t = context.tokens
    return entropy_change.exact(t.get("logp"), t.get("entropy"), t.get("s2"), t.get("s2l"), -dlogp)


def _info(flow: Tensor, base: Tensor) -> dict[str, Tensor]:
    """What comes back to `observe` in StepStats.planned, or is worth a look."""
    return {"thermostat/flow": flow, "thermostat/base_flow": base, "thermostat/updates": torch.ones_like(flow)}
