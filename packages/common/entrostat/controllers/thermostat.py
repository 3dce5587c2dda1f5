"""thermostat: solve in every update for the bonus, the token weights, or the penalty that reach a target entropy.

    observe   Ĥ, flow planned since the last Ĥ ──► Plant: filtered H, step size κ, drift d
    wanted    flow of one update = (clip(k·(target − H), ±rate) − d) / (κ · updates per rollout step)
    plan      mean φ_t + μ·mean F_t = wanted          ──► μ           (mode "bonus")
              mean m_t·φ_t = wanted                   ──► m_t         (mode "reweight")
              mean m_t·φ_t + μ·mean F_t = wanted      ──► m_t and μ   (mode "both")
              mean φ_t + β·mean R_t = wanted          ──► β           (mode "anchor")
              mean φ_t + β·mean R_t + μ·mean F_t = wanted  ──► first β, then μ   (mode "anchor+bonus")
    observe   Var(log π)·Δ ln T = wanted              ──► T of the next rollout  (mode "temperature")

Derivation and measurements: docs/thermostat.md.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from .. import entropy_change
from ..controller import Context, Controller, StepStats
from ..numbers.delayed_plant import LONGEST, DelayedPlant
from ..numbers.kl import log_ratio
from ..numbers.per_run import as_state, column, reading
from ..numbers.plant import Plant
from ..numbers.resets import ResetEvery
from ..numbers.water_level import water_level
from ..plan import Plan, rounding
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Positive
from ..tokens import Tokens

IDLE = 1e-6
"""Largest flow that counts as none, in shares of the reach."""
PATIENCE = 10
"""Plans that do not lead to the target, without coming nearer, after which the estimate starts afresh."""
OWN_STATE = ("updates", "astray", "began", "seen", "alarms")
HEAT = ("heat", "expected_change")
"""State of mode temperature alone."""


class ThermostatWarning(UserWarning):
    """The estimate of a thermostat had gone astray and starts afresh."""


@register("thermostat")
@dataclass(kw_only=True)
class Thermostat(Controller):
    """Move the mean entropy by clip(k·(target − H), ±rate) per rollout step, by a solved bonus, weights or penalty.

    φ_t is the exact flow of token t under the plan so far, and F_t = S2LL + 2H·S2L + H²·S2 is that of a unit bonus.
    mode="bonus" adds μ·H_t with μ = (wanted flow − mean φ)/mean F, the smallest change of the logit update that has the
    wanted flow, within ±bonus_max (from 0 with one_sided). mode="reweight" sets weights
    m_t = clip(1 + ν·φ_t/g_t, 0, m_max), with ν such that mean m_t·φ_t is the wanted flow, at the price
    g_t = (∂loss/∂lp_t)² ("gradient": smallest change of the gradient) or |φ_t| ("flow": OPEFO's weights if target,
    gain and drift ask for no change). Weights lose their effect when the advantages vanish; a bonus does not.
    mode="both" moves weights and bonus with one ν: μ = bonus_share·ν, and g_t = (∂loss/∂lp_t)²·‖e − p‖², the squared
    step of the token's logits.

    mode="anchor" adds β·kl(π ‖ π_ref) with estimator k2, the one whose gradient is that of the divergence. R_t is the
    flow of a unit of it, and β = (wanted flow − mean φ)/mean R within [0, anchor_max]. While mean R ≤ 0, as at the
    start, where policy and reference agree, the penalty cannot raise the entropy, and β is anchor_default. Entropy
    above the target is left to the task. mode="anchor+bonus" adds the bonus for the flow that the penalty lacks.

    mode="temperature" changes no update: it sets the sampling temperature T of the next rollout. The entropy of a
    softmax has the derivative dH/d ln T = Var(log π), the mean of (log π + H)² over samples, so T is solved for without
    another moment of the vocabulary, from old_logp and old_entropy alone. It holds the entropy of the samples; the
    policy at T = 1 goes on losing its own.

    κ, the change of entropy per unit of summed flow (the learning rate for SGD on independent logits), starts at
    `kappa` and is estimated, with `forgetting`, from the effect of earlier planned flows. A drift, with speed
    `integral`, is estimated too; it stands for all that the flow does not explain: shared parameters, curvature,
    momentum. The truncated-entropy bonus of another part is not in φ; the drift absorbs it.
    """

    target: NotNegative = 0.5
    """Target entropy (nats)."""
    mode: Literal["bonus", "reweight", "both", "anchor", "anchor+bonus", "temperature"] = "bonus"
    """Actuator: bonus, reweight, both, anchor (needs a reference policy), anchor+bonus, or temperature."""
    one_sided: bool = False
    """Keep the bonus from going negative: entropy above the target is then left to the task."""
    price: Literal["gradient", "flow"] = "gradient"
    """Price of a weight in mode reweight: gradient or flow."""
    bonus_share: Positive = 0.1
    """Bonus per unit of ν in mode both."""
    k: Annotated[Number, "(0, 2)"] = 0.1
    """Part of the error to remove in a rollout step; the loop is stable below 2."""
    rate: Annotated[Number, "(0, inf]"] = 0.02
    """Upper limit for the planned entropy change of a rollout step (nats); inf disables it. For a rise alone where the
    actuator only raises the entropy."""
    bonus_max: Positive = 1.0
    """Upper limit of |μ|."""
    anchor_max: Positive = 1.0
    """Upper limit of β."""
    anchor_default: NotNegative = 0.01
    """β while the penalty does not raise the entropy; at most anchor_max is used."""
    m_max: Annotated[Number, "(1, inf)"] = 2.0
    """Upper limit of the weights."""
    temperature_min: Positive = 0.1
    """Lower limit of the sampling temperature."""
    temperature_max: Positive = 10.0
    """Upper limit of the sampling temperature."""
    kappa: Positive = 1.0
    """Initial κ; too high is the safe side."""
    integral: NotNegative = 0.1
    """Change of the drift in a step, relative to the unexplained change of entropy."""
    forgetting: Annotated[Number, "(0, 1]"] = 0.99
    """Factor by which information on κ fades in a step."""
    delay: Annotated[int, f"[-1, {LONGEST}]"] = -1
    """Age of the entropies that are observed, in rollout steps; −1: as the trainer says, or else from the readings."""
    reset_every: ResetEvery = 0
    """mode anchor, anchor+bonus: rollout steps between two resets of the reference to the present policy; 0: none."""
    source: ClassVar = "ours: docs/thermostat.md; the flow of a token: Wang et al. 2026 (arXiv 2602.03392)"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    state: ClassVar = (*Plant._fields, "flows", "delayed", *OWN_STATE)
    last: ClassVar = True
    learns: ClassVar = True
    initial_only: ClassVar = ("kappa", "delay", "reset_every")

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = torch.as_tensor(self.delay).double().frac() == 0
        self._require(whole, "delay must be a whole number of rollout steps")
        idle = as_state(self.reset_every) == 0
        self._require(self.anchored | idle, "reset_every needs mode anchor or anchor+bonus: others have no reference")
        ordered = as_state(self.temperature_min) <= as_state(self.temperature_max)
        self._require(ordered, "temperature_min must not be above temperature_max")
        self.plant = DelayedPlant.prior(self.kappa)
        self.heat = as_state(1.0).clamp(as_state(self.temperature_min), as_state(self.temperature_max))
        """Sampling temperature of the next rollout."""
        self.expected_change = as_state(0.0)
        """Change of entropy that its last change was to cause (nats)."""
        self.updates = as_state(1.0)
        """Plans per rollout step, as counted in the last step."""
        self.astray = as_state(0.0)
        """Plans in a row that did not lead to the target."""
        self.began = as_state(0.0)
        """Distance from the target at the first of them (nats)."""
        self.seen = as_state(torch.nan)
        """Last reading (nats)."""
        self.alarms = as_state(0.0)

    @property
    def needs(self) -> frozenset[str]:
        if self.mode == "temperature":
            return frozenset({"old_logp", "old_entropy"})
        return frozenset({"logp", "entropy", "s2", "s2l", "s2ll"} | ({"ref_logp"} if self.anchored else set()))

    @property
    def controls(self) -> str:
        return {"reweight": "weight", "both": "weight+bonus"}.get(self.mode, self.mode)

    @property
    def anchored(self) -> bool:
        return self.mode.startswith("anchor")

    @property
    def _only_raises(self) -> bool:
        """True if the actuator cannot lower the entropy: how fast it falls to the target is the task's affair."""
        return self.mode == "anchor" or (self.mode == "bonus" and self.one_sided)

    @property
    def temperature(self) -> Tensor | None:
        return self.heat if self.mode == "temperature" else None

    def observe(self, stats: StepStats) -> None:
        entropy = reading(stats.entropy)
        names = ("flow", "updates", "reach")
        flow, updates, reach = (reading(stats.planned.get(f"thermostat/{name}", 0.0)) for name in names)
        if self.mode == "temperature":
            flow, updates = self.expected_change, torch.ones_like(flow)
        own, told = as_state(self.delay), as_state(-1.0 if stats.delay is None else stats.delay)
        self.plant = self.plant.observe(
            entropy,
            flow,
            delay=torch.where(own < 0, told, own),
            forgetting=self.forgetting,
            drift_rate=self.integral,
            least=torch.where(self.rate < self.kappa * reach, as_state(self.rate) / reach, 0.0),
        )
        self._watch(entropy, flow, reach)
        self.updates = torch.where(~entropy.isnan() & (updates > 0), updates.to(self.updates), self.updates)
        if self.mode == "temperature":
            self._heat(stats, ~entropy.isnan())

    def _heat(self, stats: StepStats, known: Tensor) -> None:
        """Set the temperature of the next rollout where the entropy is known, and so is the variance of log π."""
        spread, plans = (
            reading(stats.planned.get(f"thermostat/{name}", 0.0)).to(known.device) for name in ("spread", "updates")
        )
        spread = spread / plans
        low, high = (as_state(x).to(known.device) for x in (self.temperature_min, self.temperature_max))
        asked = (self.heat.log() + self.wanted_flow() / spread).exp()
        heat = torch.where(known & (spread > 0), asked, self.heat).clamp(low, high)
        if self.one_sided:
            heat = heat.clamp(min=1)
        moved = spread * (heat / self.heat).log()
        self.expected_change, self.heat = torch.where(spread > 0, moved, 0.0), heat

    def _watch(self, entropy: Tensor, flow: Tensor, reach: Tensor) -> None:
        """Start the estimate afresh after PATIENCE plans in a row that did not lead to a far target, nor came near it.

        entropy: the new reading, which no estimate has touched; NaN leaves everything as it is. flow: of the plans
        before it. reach: largest flow that they could add; without any there is nothing to mend. An actuator that only
        raises the entropy leaves a target below to the task.
        """
        if self.mode in ("anchor", "temperature") or self.one_sided:
            return
        known, before = ~entropy.isnan(), as_state(self.target) - self.seen
        gap, wrong = (as_state(self.target) - entropy).abs(), (reach > 0) & (before.sign() * flow <= IDLE * reach)
        began = torch.where(wrong & (self.astray > 0), self.began, before.abs().nan_to_num(nan=0.0))
        self.seen, self.began = torch.where(known, entropy, self.seen), torch.where(known, began, self.began)
        self.astray = torch.where(known, torch.where(wrong, self.astray + 1, 0.0), self.astray)
        full = self.astray >= PATIENCE
        rate, half = as_state(self.rate), as_state(self.target) / 2
        far = torch.maximum(torch.minimum(PATIENCE * rate, half), rate)
        stuck = full & (gap > torch.maximum(far, self.began - rate))
        self.astray = torch.where(full, 0.0, self.astray)
        if not bool(stuck.any()):
            return
        self.plant = self.plant.afresh(stuck, self.kappa)
        first, self.alarms = not bool((self.alarms > 0).any()), self.alarms + stuck
        if first:
            warnings.warn(
                f"thermostat: for {PATIENCE} rollouts its plans did not lead to the target, and the entropy came no "
                f"nearer (now {float(entropy[stuck].mean()):.3g} nats): κ and drift are estimated afresh",
                ThermostatWarning,
                stacklevel=2,
            )

    def wanted_flow(self) -> Tensor:
        """Return the mean flow wanted from one update, float64 (...,), nats per unit of κ; 0 before any observation."""
        error = torch.nan_to_num(as_state(self.target) - self.plant.entropy, nan=0.0)
        rate, asked = as_state(self.rate), self.k * error
        limited = asked.clamp(max=rate) if self._only_raises else asked.clamp(min=-rate, max=rate)
        change = limited - self.plant.drift
        away = (asked.abs() > rate) & (change * error < 0)  # a drift towards a far target is welcome
        freely = asked.clamp(max=0.0) if self._only_raises else torch.zeros_like(asked)
        return torch.where(away, freely, change) / (self.plant.gain * self.updates)

    def transform(self, plan: Plan, context: Context) -> Plan:
        acts = {
            "bonus": self._add_bonus,
            "reweight": self._reweight,
            "both": self._do_both,
            "anchor": self._add_anchor,
            "anchor+bonus": self._add_anchor_and_bonus,
            "temperature": self._measure_spread,
        }
        return acts[self.mode](plan, context)

    def _add_bonus(self, plan: Plan, context: Context, base: Tensor | None = None) -> Plan:
        """Return the plan with the bonus; base: its mean flow (...,), computed if None."""
        if base is None:
            base = context.reduce.mean(entropy_change.planned(context.tokens, plan).total)
        slope = context.reduce.mean(_bonus_flow(context.tokens))
        limit = as_state(self.bonus_max).to(base)
        coef = (self.wanted_flow().to(base) - base) / slope
        coef = torch.where(slope > 0, coef, 0.0).clamp(min=0 * limit if self.one_sided else -limit, max=limit)
        info = {"thermostat/bonus": coef, **_info(base + coef * slope, base, limit * slope)}
        return plan.add_entropy_bonus(column(coef, context.tokens.advantage), **info)

    def _reweight(self, plan: Plan, context: Context) -> Plan:
        dlogp, flow, fixed = _weighted_flow(plan, context)
        price = flow.abs() if self.price == "flow" else dlogp.square()
        wanted = self.wanted_flow().to(flow.device) - fixed
        solved = water_level(flow, price, wanted, as_state(self.m_max).to(wanted), context.reduce)
        reach = as_state(self.m_max).to(flow) * context.reduce.mean(flow.abs()) / 2
        info = {"thermostat/level": solved.level, **_info(solved.achieved + fixed, solved.base + fixed, reach)}
        return plan.reweight(solved.weight, **info)

    def _do_both(self, plan: Plan, context: Context) -> Plan:
        t, reduce = context.tokens, context.reduce
        dlogp, flow, fixed = _weighted_flow(plan, context)
        price = dlogp.square() * squared_step(t.get("logp"), t.get("s2"))
        wanted = self.wanted_flow().to(flow.device) - fixed
        m_max, share, limit = (as_state(x).to(wanted) for x in (self.m_max, self.bonus_share, self.bonus_max))
        slope = reduce.mean(_bonus_flow(t))
        if self.one_sided:
            share = torch.where(wanted > reduce.mean(flow), share, 0.0)
        solved = water_level(flow, price, wanted, m_max, reduce, linear=share * slope)
        coef = (share * solved.level).clamp(min=-limit, max=limit)
        achieved = solved.achieved + (coef - share * solved.level) * slope
        info = {"thermostat/level": solved.level, "thermostat/bonus": coef}
        info |= _info(achieved + fixed, solved.base + fixed, limit * slope)
        return plan.reweight(solved.weight).add_entropy_bonus(column(coef, flow), **info)

    def _add_anchor(self, plan: Plan, context: Context) -> Plan:
        t, reduce = context.tokens, context.reduce
        base, slope = (reduce.mean(flow) for flow in (entropy_change.planned(t, plan).total, anchor_flow(t)))
        default, limit = (as_state(x).to(base) for x in (self.anchor_default, self.anchor_max))
        coef = torch.where(slope > 0, (self.wanted_flow().to(base) - base) / slope, default)
        coef = coef.clamp(min=0 * limit, max=limit)
        info = {
            "thermostat/anchor": coef,
            **_info(base + coef * slope, base, limit * slope.clamp(min=0)),
        }
        penalised = plan.add_ref_kl(column(coef, t.advantage), t.get("ref_logp"), "k2")
        return penalised.changed(info={**plan.info, **info})

    def _add_anchor_and_bonus(self, plan: Plan, context: Context) -> Plan:
        anchored = self._add_anchor(plan, context)
        both = self._add_bonus(anchored, context, anchored.info["thermostat/flow"])
        return both.changed(info={**both.info, "thermostat/base_flow": anchored.info["thermostat/base_flow"]})

    def _measure_spread(self, plan: Plan, context: Context) -> Plan:
        """Return the plan unchanged, with the mean of (log π + H)² over the samples in its info."""
        old_logp, old_entropy = (context.tokens.get(name) for name in ("old_logp", "old_entropy"))
        spread = context.reduce.mean((old_logp + old_entropy).square().expand(context.tokens.advantage.shape))
        info = {"thermostat/spread": spread, "thermostat/updates": torch.ones_like(spread)}
        return plan.changed(info={**plan.info, **info})

    def metrics(self) -> dict[str, Tensor]:
        heat = {"thermostat/temperature": self.heat} if self.mode == "temperature" else {}
        return heat | {
            "thermostat/kappa": self.plant.gain,
            "thermostat/drift": self.plant.drift,
            "thermostat/delay": self.plant.delay,
            "thermostat/astray": self.astray,
            "thermostat/alarms": self.alarms,
            "thermostat/error": self.plant.entropy - self.target,
            "thermostat/wanted_flow": self.wanted_flow(),
        }

    def state_dict(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self._own_state}
        return {key: value.clone() for key, value in {**_state_of(self.plant), **own}.items()}

    @property
    def _own_state(self) -> tuple[str, ...]:
        return OWN_STATE + (HEAT if self.mode == "temperature" else ())

    def _kept(self) -> tuple[str, ...]:
        return (*self.state, *self._own_state[len(OWN_STATE) :])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore exactly what `state_dict` returned; also the state of a version that knew no delays."""
        if "gain" in state and "flows" not in state:
            held = {name: torch.as_tensor(value) for name, value in state.items()}
            fields = {name: held.get(name, torch.zeros_like(held["gain"])) for name in Plant._fields}
            state = {**self.state_dict(), **_state_of(DelayedPlant.of(Plant(**fields))), "updates": held["updates"]}
        super().load_state_dict(state)

    def _restore(self, state: dict[str, Tensor]) -> None:
        flows, delay = state.pop("flows"), state.pop("delayed")
        for name in self._own_state:
            setattr(self, name, state.pop(name))
        self.plant = DelayedPlant(Plant(**state), flows, delay)


def _state_of(plant: DelayedPlant) -> dict[str, Tensor]:
    return {**plant.plants._asdict(), "flows": plant.flows, "delayed": plant.delay}


def _weighted_flow(plan: Plan, context: Context) -> tuple[Tensor, Tensor, Tensor | float]:
    """Return ∂loss/∂lp and flow of the terms with a weight, (..., N) each, and mean flow of the rest, (...,) or 0."""
    weighted = plan.changed(entropy_coef=None, kl_coef=None, ref_coef=None)
    dlogp, flow, _ = entropy_change.planned(context.tokens, weighted)
    if plan.entropy_coef is None and plan.kl_coef is None and plan.ref_coef is None:
        return dlogp, flow, 0.0
    return dlogp, flow, context.reduce.mean(entropy_change.planned(context.tokens, plan).total - flow)


def _bonus_flow(tokens: Tokens) -> Tensor:
    """Return F of each token, (..., N)."""
    return entropy_change.bonus(*(tokens.get(name) for name in ("entropy", "s2", "s2l", "s2ll")))


def anchor_flow(tokens: Tokens) -> Tensor:
    """Return R of each token, (..., N): `entropy_change.exact` with the weight −∂k2/∂lp = log π_ref − lp.

    It is 0 for tokens whose policies agree within rounding, so that rounding has no sign, and for impossible tokens.
    """
    logp, entropy, s2, s2l = (tokens.get(name) for name in ("logp", "entropy", "s2", "s2l"))
    ref_logp = tokens.get("ref_logp")
    gap = log_ratio(logp, ref_logp)
    apart = gap.isfinite() & (gap.abs() > rounding(gap) * (1 + ref_logp.abs()))
    return entropy_change.exact(logp, entropy, s2, s2l, torch.where(apart, -gap, 0.0))


def squared_step(logp: Tensor, s2: Tensor) -> Tensor:
    """Return ‖e_o − p‖² = 1 − 2p_o + S2 of each token, (..., N), in [(1 − p_o)², 2(1 − p_o)²] despite rounding."""
    least = torch.expm1(logp).square()
    return (1 - 2 * logp.exp() + s2).clamp(least, 2 * least)


def _info(flow: Tensor, base: Tensor, reach: Tensor) -> dict[str, Tensor]:
    """Return entries of Plan.info: base_flow is for the log, the others reach `observe` as StepStats.planned.

    reach: largest flow that the actuator can add.
    """
    info = {"flow": flow, "base_flow": base, "updates": torch.ones_like(flow), "reach": reach}
    return {f"thermostat/{name}": value for name, value in info.items()}
