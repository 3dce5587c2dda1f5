"""Each claim as a trial: the setting that shows the claim, the setting that turns the verdict, and the assumptions.

At `values` the trial holds, or fails if the claim fails as stated; at `turned` it does the opposite. A condition that
is not `stated` is one that the claim needs and the paper does not name: because of it, the claim only "holds if".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from ..claims.trap import FIXED, HOLDING
from . import balance, baselines, first_order, flexible, opefo, quadrants, rules, shielding, tokens, trap
from .control import CLOSED_FORM, LOST
from .registry import TRIALS, Outcome, Parameter, Trial

ROUNDING = 1e-9
"""Tolerance for rounding of the sliders' numbers."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Values of one parameter that a claim assumes."""

    key: str
    low: float = -inf
    high: float = inf
    allowed: tuple[Any, ...] = ()
    """Allowed values, if they are not a range."""
    stated: bool = True
    """True if the paper names this assumption."""

    def met(self, value: Any) -> bool:
        """Return True if `value` meets the condition."""
        return value in self.allowed if self.allowed else self.low - ROUNDING <= value <= self.high + ROUNDING

    def told(self, parameter: Parameter) -> str:
        """Return the condition as text, such as "Kp ≥ 1"."""
        name = parameter.symbol or parameter.label
        if isinstance(parameter.default, bool):
            return f"{name}: {'on' if self.allowed[0] else 'off'}"
        if self.allowed:
            return f"{name}: {' or '.join(map(str, self.allowed))}"
        if self.low == self.high:
            return f"{name} = {self.low:g}"
        if self.high == inf:
            return f"{name} ≥ {self.low:g}"
        return f"{name} ≤ {self.high:g}" if self.low == -inf else f"{self.low:g} ≤ {name} ≤ {self.high:g}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Claim on trial."""

    claim: str
    trial: Trial
    values: Mapping[str, Any] = field(default_factory=dict)
    """First setting of the claim, as differences from the trial's defaults."""
    turned: Mapping[str, Any]
    """Changes to the first setting that turn the verdict."""
    conditions: tuple[Condition, ...] = ()

    @property
    def start(self) -> dict[str, Any]:
        """Every parameter at the first setting."""
        return self.trial.values(self.values)

    def run(self, **given: Any) -> Outcome:
        """Run the trial at `start`, changed to these values. Raise ValueError, one line, on unknown keys and values."""
        return self.trial.run(**{**self.values, **given})

    def broken(self, values: Mapping[str, Any]) -> list[Condition]:
        """Return the conditions that these values of all parameters do not meet."""
        return [condition for condition in self.conditions if not condition.met(values[condition.key])]

    def told(self, condition: Condition) -> str:
        """Return a condition as text."""
        return condition.told(next(p for p in self.trial.parameters if p.key == condition.key))

    def note(self, key: str) -> str:
        """Return a sentence with the assumptions on a parameter; empty if there are none."""
        found = [self.told(condition) for condition in self.conditions if condition.key == key]
        return f"Assumed: {', '.join(found)}." if found else ""


CASES: dict[str, Case] = {}
"""Cases by the name of their claim."""


def add(claim: str, trial: str, values: Mapping[str, Any], turned: Mapping[str, Any], *conditions: Condition) -> None:
    """Put a claim on trial. Raise ValueError if it already is."""
    if claim in CASES:
        raise ValueError(f"claim {claim!r} is on trial twice")
    CASES[claim] = Case(claim=claim, trial=TRIALS[trial], values=values, turned=turned, conditions=conditions)


def within(key: str, low: float = -inf, high: float = inf, *, stated: bool = True) -> Condition:
    return Condition(key=key, low=low, high=high, stated=stated)


def equals(key: str, *allowed: Any, stated: bool = True) -> Condition:
    if len(allowed) == 1 and isinstance(allowed[0], int | float) and not isinstance(allowed[0], bool):
        return Condition(key=key, low=allowed[0], high=allowed[0], stated=stated)
    return Condition(key=key, allowed=allowed, stated=stated)


SMALL_STEP = within("eta", high=1)
TINY_STEP = within("log_eta", high=-2)
REUSED = within("passes", low=2)
OFTEN_REUSED = within("passes", low=8)
ON_POLICY = equals("passes", 1)
NOISY = equals("env", "noisy")
UNBOUNDED = within("alpha_max", low=1)

add("lemma1-order", "first-order", {}, {"eta": 5.0}, SMALL_STEP)
add("lemma1-remainder", "remainder", {}, {"arms": "1000"}, equals("arms", "2", "16", "64", stated=False))
add(
    "thm1-centred",
    "first-order",
    {"rule": first_order.PG},
    {"shift": 0.5},
    equals("shift", 0),
    equals("rule", first_order.PG),
    SMALL_STEP,
)
add(
    "thm1-any-advantage",
    "first-order",
    {"rule": first_order.PG, "shift": 0.5},
    {"shift": 0.0},
    equals("rule", first_order.PG),
    SMALL_STEP,
)
add(
    "thm2-natural-gradient",
    "first-order",
    {"rule": first_order.NPG, "shift": 0.5},
    {"rule": first_order.PG},
    equals("rule", first_order.NPG),
    SMALL_STEP,
)
SIGNAL = (within("right", low=0.6), within("wrong", high=0.3), within("rollouts", high=150))
add("law-fit", "law", {}, {"right": 0.34, "wrong": 0.3}, *SIGNAL, equals("window", 1))
add(
    "law-prediction",
    "law",
    {"window": 0.15, "rollouts": 100, "lr": 0.3},
    {"lr": 1.0},
    *SIGNAL,
    within("window", low=0.15, high=0.95),
    within("lr", high=0.5, stated=False),
)
add("law-algorithms", "law-algorithms", {}, {"std": 1.0}, equals("std", 2), *SIGNAL)
add("clip-cov", "covariance-rules", {}, {"env": "det"}, NOISY, REUSED, within("largest", high=0.1))
add(
    "kl-cov",
    "covariance-rules",
    {"rule": rules.KL_COV},
    {"passes": 1},
    NOISY,
    REUSED,
    within("largest", high=0.1),
)
add("kl-cov-on-policy", "kl-cov-is-grpo", {}, {"passes": 2}, ON_POLICY)
add("clip-thresholds", "clipping", {}, {"passes": 1}, OFTEN_REUSED, NOISY)
add(
    "clip-random-rewards",
    "clipping",
    {"bound": rules.LOWER, "env": "pure"},
    {"passes": 1},
    OFTEN_REUSED,
    equals("env", "pure"),
)
add("clip-free", "clipping", {"bound": rules.BOTH}, {"bound": rules.UPPER}, OFTEN_REUSED, NOISY)
add("clip-mechanism", "clip-mechanism", {}, {"passes": 1}, REUSED, within("std", low=1.5))
add("off-policy-updates", "reuse", {}, {"lr": 4.0}, within("rollouts", high=20), within("lr", high=1))
add("cor4.1-collinear", "collinear", {}, {"passes": 4}, ON_POLICY, equals("partial", 0))
add(
    "cor4.1-signs",
    "one-sign",
    {},
    {"clip": False},
    equals("clip", True, stated=False),
    within("passes", low=8, stated=False),
    NOISY,
)
add(
    "thm4.2-p-control",
    "p-and-pi",
    {"ki": 0.0, "right": 0.5},
    {"right": 0.6},
    equals("ki", 0),
    equals("right", 0.5, stated=False),
)
add("thm4.2-fixed-point", "p-and-pi", {"ki": 0.0, "rest": CLOSED_FORM}, {"ki": 0.1}, equals("ki", 0))
add("thm4.3-pi-control", "p-and-pi", {}, {"ki": 0.0}, within("ki", low=0.01))
add(
    "thm4.3-off-policy",
    "feedback",
    {"tau": 0.0},
    {"passes": 1, "lr": 2.0},
    REUSED,
    equals("tau", 0),
    within("ki", low=0.01),
)
add(
    "thm4.3-on-policy",
    "feedback",
    {"passes": 1, "lr": 2.0},
    {"ki": 0.0},
    ON_POLICY,
    equals("tau", 0.5),
    within("ki", low=0.01, stated=False),
)
add(
    "tau-zero",
    "feedback",
    {"claimed": LOST, "tau": 0.0, "passes": 1, "lr": 2.0, "alpha_max": 10.0},
    {"tau": 0.5},
    ON_POLICY,
    equals("tau", 0),
)
add("tau-below-top", "feedback", {}, {"tau": 0.95}, REUSED, within("tau", high=0.8, stated=False))
add("windup", "windup", {}, {"anti_windup": False}, equals("anti_windup", True, stated=False))
add("pi-stability-linear", "linear-loop", {}, {"alpha_max": 0.02}, UNBOUNDED)
add(
    "entropic-gains",
    "linear-loop",
    {},
    {"alpha_max": 0.02},
    within("s", low=0.5, high=1.5),
    within("c", high=0.7),
    UNBOUNDED,
)
add("pi-stability-exact", "exact-loop", {}, {"alpha_max": 0.3}, UNBOUNDED)
add("entropy-bonus", "bonus", {}, {"largest": 4.0, "lr": 8.0}, NOISY, REUSED, within("lr", high=2))
add("entropy-advantage", "bonus", {"way": rules.ADVANTAGE, "largest": 1.0}, {"passes": 1}, NOISY, REUSED)
LONG = {"rollouts": 80, "passes": 4}
add(
    "adaptive-entropy",
    "holding",
    {"controller": "adaptive entropy", **LONG},
    {"env": "pure"},
    equals("env", "noisy", "det"),
    within("target", high=1),
)
add(
    "pos-adv-reweight",
    "holding",
    {"controller": "Pos-Adv-Reweight", **LONG},
    {"env": "det"},
    equals("env", "noisy", stated=False),
    within("target", high=1),
)
add(
    "adaptive-clip",
    "holding",
    {"controller": "adaptive clip", "passes": 8, "target": 0.9},
    {"target": 2.0},
    NOISY,
    within("target", low=0.8, high=0.95, stated=False),
)
add(
    "stare-target",
    "holding",
    {"controller": "STARE", **LONG},
    {"speed": 0.5},
    equals("env", "noisy", "on"),
    within("speed", low=2, stated=False),
    within("target", low=0.5, high=0.7, stated=False),
)
add("thermostat", "holding", {}, {"target": 2.9}, within("target", high=2.6))
add("token-flow", "token-flow", {}, {"log_eta": 0.0}, TINY_STEP)
add("token-flows-add", "first-order", {"rule": first_order.TOKENS}, {"eta": 20.0}, SMALL_STEP)
OWN_LOGIT = equals("moves", tokens.OWN, stated=False)
EVERY_LOGIT = equals("moves", tokens.WHOLE)
add("sign-boundary", "token-sign", {}, {"weight": -1.0}, within("weight", low=0.1), EVERY_LOGIT, TINY_STEP)
add("steer-thm1", "omega", {}, {"moves": tokens.WHOLE}, OWN_LOGIT)
add(
    "steer-sign",
    "token-sign",
    {"boundary": tokens.INVERSE, "moves": tokens.OWN},
    {"moves": tokens.WHOLE},
    OWN_LOGIT,
    TINY_STEP,
)
add("opefo-thm1", "state-change", {}, {"formula": "exact"})
add("em-equation-7", "responses", {}, {"length": 4}, equals("length", 1, stated=False))
add("opefo-sign", "token-sign", {"boundary": tokens.INVERSE}, {"boundary": tokens.P_STAR}, TINY_STEP)
add("estimates-by-error", "estimates", {}, {"log_eta": 1.0}, TINY_STEP)
add("steer-table-7", "omega-or-cov", {"spread": 0.99}, {"spread": 0.0}, within("spread", low=0.8, stated=False))
QUADRANT_IV = {"quadrant": quadrants.IV}
add("four-quadrants", "quadrants", QUADRANT_IV, {"env": "det"}, equals("env", "noisy", "on"))
add("four-quadrants-det", "quadrants", {**QUADRANT_IV, "env": "det"}, {"env": "noisy"}, equals("env", "det"))
add("steer-collapse", "steer-collapse", {}, {"rollouts": 10}, NOISY, REUSED)
add("opefo-formula", "token-flow", {"estimator": "OPEFO"}, {"estimator": "exact"}, TINY_STEP)
EXACT_FLOW = equals("estimator", opefo.EXACT, stated=False)
add("opefo-one-step", "opefo-step", {}, {"estimator": opefo.PAPER}, EXACT_FLOW, equals("coupling", 0))
add("qae-baseline", "baseline", {}, {"step": baselines.TAKEN}, equals("step", baselines.GRADIENT))
add(
    "qae-quantile",
    "quantile",
    {},
    {"clip": False},
    equals("clip", True, stated=False),
    within("passes", low=8, stated=False),
    NOISY,
)
add("bapo-bounds", "share", {}, {"bound": balance.LOWER}, equals("bound", balance.UPPER, stated=False))
add("lp-reg-shield", "shield", {}, {"ratio": 1.0}, within("ratio", high=shielding.FALLEN, stated=False))
add("lp-reg-entropy", "lp-reg", {}, {"share": 0.01}, NOISY, within("share", low=0.1, stated=False))
add(
    "siren-anchor",
    "anchor",
    {},
    {"log_beta": -2.3},
    equals("env", "noisy", "on"),
    within("log_beta", low=0.0, stated=False),
    within("top_p", low=1.0, stated=False),
)
add(
    "siren-collapse",
    "anchor",
    {"env": "on", "rollouts": 300},
    {"top_p": 0.8},
    equals("env", "noisy", "on"),
    within("rollouts", low=300),
    within("top_p", low=1.0, stated=False),
)
add("bapo-entropy", "bapo", {}, {"share": 0.4}, REUSED, NOISY, within("share", low=0.55, stated=False))
add("opefo-run", "opefo-run", {}, {"estimator": opefo.PAPER}, EXACT_FLOW, equals("coupling", 0), within("lr", high=0.2))
add("dppo-mask", "mask", {}, {"passes": 1}, REUSED, NOISY)
add("dppo-learning", "learning", {}, {"passes": 1}, REUSED, NOISY)
add("vespo-staleness", "staleness", {}, {"kernel": "φ = w"}, equals("kernel", "VESPO"), REUSED)
add("delayed-loops", "delayed-loop", {}, {"delay": 8}, within("delay", high=2))
NEAR_START = {"target": 1.45}
add(
    "repo-r-target",
    "holding",
    {"controller": "REPO-R", "env": "on", **LONG, **NEAR_START},
    {"env": "noisy"},
    equals("env", "on", stated=False),
)
add(
    "adapo-target",
    "holding",
    {"controller": "ADAPO", "passes": 8, "rollouts": 80, "lr": 0.5},
    {"target": 2.0},
    NOISY,
    within("target", low=0.55, high=0.65, stated=False),
)
add(
    "aer-target",
    "holding",
    {"controller": "AER", **LONG},
    {"env": "det"},
    equals("env", "noisy", stated=False),
    within("target", high=1),
)
add("papo-polarity", "polarity", {}, {"gamma": 0.0}, within("gamma", low=0.1))
add(
    "papo-target",
    "holding",
    {"controller": "PAPO", **LONG},
    {"env": "det"},
    equals("env", "noisy", "on", stated=False),
    within("target", high=1),
)
add("flexible-clip-bounds", "flexible-clip", {}, {"passes": 1}, REUSED, NOISY)
add(
    "flexible-clip-strategies",
    "flexible-clip",
    {"variant": flexible.DID},
    {"variant": flexible.ID},
    REUSED,
    NOISY,
    equals("variant", flexible.DID, stated=False),
)
add("trap-grpo", "trap", {}, {"rare": 2.0}, equals("claimed", trap.STAYS), within("rare", high=-2))
add("trap-escape", "trap-escape", {}, {"pays": 0.3}, within("pays", low=0.8))
add(
    "trap-late",
    "trap",
    {"claimed": trap.LATE, "control": FIXED, "before": 600},
    {"control": HOLDING},
    within("before", low=300),
    equals("control", FIXED, stated=False),
)
add("trap-price", "trap-price", {}, {"env": "noisy"}, equals("env", "trap", stated=False))
