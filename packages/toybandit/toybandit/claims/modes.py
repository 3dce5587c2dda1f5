"""Modes of the thermostat: which hold a target, and what a penalty to a reference leaves to the task."""

from collections.abc import Callable
from typing import Any

from entrostat.controller import Context
from entrostat.controllers.thermostat import Thermostat
from entrostat.plan import Plan

from .checks import Values, above, between, every, numbers_of, settle
from .feedback import GOAL, late, told_errors
from .holding import FIXED_BONUS, length
from .live_case import Live, equals, within
from .memory import remember
from .mutations import OFF, Mutation, Swap, always, negated
from .registry import HOLDS, Effort, Finding, claim
from .runs import entropies

ENVS = ("noisy", "pure")
EXACT = 0.01
"""Largest error of a mode that holds its target, nats."""
HOLDING = ("bonus", "reweight", "both", "anchor+bonus")
ANCHOR = "anchor"
Act = Callable[[Thermostat, Plan, Context], Plan]
"""Function of the thermostat that adds its actuator to a plan."""


@remember
def errors(effort: Effort, mode: str, env: str) -> Values:
    """Return H − target late in each run under a mode, (runs,), nats."""
    args: dict[str, Any] = {"mode": mode}
    entropy = entropies(effort, env=env, target=GOAL, controller="thermostat", controller_args=args, **length(env))
    return late(entropy) - GOAL


def helped(penalise: Act) -> Act:
    """Return the penalty followed by the bonus for what it lacks."""

    def with_bonus(self: Thermostat, plan: Plan, context: Context) -> Plan:
        penalised = penalise(self, plan, context)
        return self._add_bonus(penalised, context, penalised.info["thermostat/flow"])

    return with_bonus


@claim(
    "thermostat-modes",
    paper="Ours",
    source="`entrostat.controllers.thermostat`; not found elsewhere",
    words="a bonus, weights, both, and a penalty with a bonus hold the target; the penalty to a reference alone leaves "
    "entropy above the target to the task, and misses by more where the task takes none away",
    statement=(
        r"\beta \ge 0:\quad H > H^* \Rightarrow \beta = 0, \quad \Delta H = \text{that of the task}",
        r"\Rightarrow\ H_{\text{anchor}} - H^* > 0, \quad \text{others} \to 0",
    ),
    assumption="noisy, and pure, where no arm is better, target .6, no tuning; the reference is the initial policy",
    threshold=f"mean error late in the runs within {EXACT:g} nats for four modes; for anchor above {EXACT:g}, "
    "and larger in pure than in noisy",
    null="one fixed coefficient of the bonus",
    expected=HOLDS,
    mutations=(
        Mutation("the wanted flow had the other sign", Swap(Thermostat, "wanted_flow", negated)),
        Mutation("the controller were switched off", Swap(Thermostat, "transform", OFF)),
        Mutation("a bonus helped the penalty", Swap(Thermostat, "_add_anchor", helped)),
        Mutation("the other modes were the penalty alone", Swap(__name__, "HOLDING", always((ANCHOR,)))),
    ),
    live=Live(
        "holding",
        values={"controller": "thermostat, anchor+bonus", "rollouts": 80},
        turned={"controller": "thermostat, anchor", "env": "pure"},
        conditions=(
            equals("controller", "thermostat", "thermostat, anchor+bonus"),
            within("target", low=0.5, high=0.7, stated=False),
        ),
    ),
)
def thermostat_modes(effort: Effort) -> Finding:
    """A coefficient below zero would push the policy away from its reference without bound, so the penalty can only
    raise the entropy. Each mini-batch has a flow of its own: the penalty replaces the low ones and leaves the high
    ones, so the entropy settles above a target that the task alone would fall below, and in `pure` no task pulls it
    down."""
    found = {f"{mode}, {env}": errors(effort, mode, env) for mode in (*HOLDING, ANCHOR) for env in ENVS}
    held = [between(found[f"{mode}, {env}"], -EXACT, EXACT) for mode in HOLDING for env in ENVS]
    noisy, pure = (found[f"{ANCHOR}, {env}"] for env in ENVS)
    missed = above(noisy, EXACT) & above(pure - noisy)
    fixed = {env: late(entropies(effort, env=env, controller="entropy_bonus", **FIXED_BONUS)) - GOAL for env in ENVS}
    return Finding(told_errors(found), numbers_of(found), *settle(every(held) & missed), null=told_errors(fixed))
