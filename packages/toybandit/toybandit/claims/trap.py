"""Trap: gains of entropy control where the best arm is seldom drawn, and its price where it is not."""

from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from entrostat.about.end_labels import End, label_ends
from entrostat.controllers.bonus import EntropyBonus
from entrostat.controllers.thermostat import Thermostat

from ..environments import ENVIRONMENTS, Environment
from ..figures import band, series_styles
from ..simulator import simulate
from ..trajectory import Trajectory
from .checks import Values, above, below, every, numbers_of, rising, settle, told
from .live_case import Live, equals, within
from .memory import remember
from .mutations import OFF, Mutation, Swap, negated
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, holds_if
from .runs import sized

TEMPTING, RARE = 0, 1
"""Arms of `trap`: the likeliest, which pays half of the time, and the one that always pays."""
SIZE: dict[str, Any] = {"states": 16, "rollouts": 300, "passes": 2, "lr": 2.0}
"""Size of the runs at every effort: a quarter of the updates of `trap`, each four times as large, to save time."""
TARGET = 1.2
"""Target of the thermostat, nats: half of the initial entropy."""
COEFFICIENT = 0.1
"""Coefficient of the fixed bonus."""
FALLING = "linear(2.4, 0.05, 300)"
"""Target that falls from the initial entropy to nearly none over a run."""
GRPO, HOLDING, FIXED = "GRPO", "thermostat", "fixed bonus"
CONTROLS: dict[str, dict[str, Any]] = {
    GRPO: {},
    HOLDING: {"controller": "thermostat", "target": TARGET},
    FIXED: {"controller": "entropy_bonus", "controller_args": {"coef": COEFFICIENT}},
}
FEW = 0.05
"""Share of states that counts as none."""
TOO_LATE, IN_TIME = 0.5, 0.75
"""Share of the states found with control from the start, up to which control comes too late, or from which in time."""
FIRST = 600
"""Rollouts of GRPO before control begins."""


@remember
def trained(effort: Effort, control: str = GRPO, env: str = "trap", before: int = 0, **numbers: Any) -> Trajectory:
    """Simulate runs under one of CONTROLS, with SIZE and `numbers`, after `before` rollouts of GRPO with `numbers`."""
    start = trained(effort, GRPO, env, **{**numbers, "rollouts": before}).logits if before else None
    return simulate(
        sized(effort, {**SIZE, "env": env, **CONTROLS[control], **numbers}), range(effort.runs), start=start
    )


def escaped(run: Trajectory) -> Values:
    """Return the share of states whose rare arm is likelier than the tempting one at the end, (runs,)."""
    share: Values = (run.probabilities[..., RARE] > run.probabilities[..., TEMPTING]).mean(1)
    return share


def listed(found: dict[str, Values]) -> str:
    """Return named means ± standard errors as text."""
    return ", ".join(f"{name}: {told(values)}" for name, values in found.items())


def changed_arm(logit: float = -2.5, pays: float = 1.0) -> Any:
    """Return the change of `trap` to one whose rare arm has another logit or reward."""

    def change(trap: Environment) -> Environment:
        assert trap.logits is not None
        assert trap.success is not None
        logits, success = list(trap.logits[0]), list(trap.success[0])
        logits[RARE], success[RARE] = logit, pays
        return replace(trap, logits=(tuple(logits),), success=(tuple(success),))

    return change


OPEN = Mutation("the best arm were as likely as the tempting one", Swap(ENVIRONMENTS, "trap", changed_arm(logit=2.0)))
UNPAID = Mutation("the rare arm paid no more than most", Swap(ENVIRONMENTS, "trap", changed_arm(pays=0.3)))
SWITCHED_OFF = Mutation("the thermostat were switched off", Swap(Thermostat, "transform", OFF))
WRONG_SIGN = Mutation("the wanted flow had the other sign", Swap(Thermostat, "wanted_flow", negated))
WITHOUT_CONTROL: dict[str, dict[str, Any]] = {
    "G = 4": {"group": 4},
    "G = 16": {},
    "G = 64": {"group": 64},
    "η = .5": {"lr": 0.5},
    "η = 4": {"lr": 4.0},
    "exact gradient": {"gradient": "exact"},
    "1,200 rollouts": {"rollouts": 1200},
}
"""Settings of GRPO; those not given are G = 16, η = 2, 300 rollouts."""


@claim(
    "trap-grpo",
    paper="Ours",
    source="environment `trap`; the softmax gravity well is known (Mei et al. 2020, Escaping the Gravitational Pull of "
    "Softmax, and arXiv 2605.11908)",
    words="GRPO settles for a likely arm that pays half of the time and does not find a rare one that always "
    "pays, with larger groups, other learning rates, exact gradients and more rollouts alike",
    statement=(
        r"\pi_0(a^*) \ll \pi_0(a),\ q_{a^*} > q_a > q_b",
        r"\Rightarrow\ \pi_T(a^*) < \pi_T(a) \ \text{ under GRPO}",
    ),
    assumption="trap: the tempting arm is drawn with probability .21, the rare one with .0025",
    threshold=f"the rare arm is the likelier one in at most {FEW:.0%} of the states in each setting, and in more than "
    "half of them under the null: one state in twenty is luck, half is not",
    null=f"a thermostat at {TARGET:g} nats",
    expected=HOLDS,
    mutations=(OPEN, SWITCHED_OFF),
    live=Live(
        "trap",
        turned={"rare": 2.0},
        conditions=(equals("claimed", "GRPO stays in the trap"), within("rare", high=-2)),
    ),
)
def trap_grpo(effort: Effort) -> Finding:
    """GRPO is drawn to what pays now. Exact gradients, which miss no arm, end in the trap too, so too few samples are
    not the reason: the tempting arm grows faster than the rare one can."""
    effort = effort.times(2)  # few states escape, so they are counted in twice as many runs
    found = {name: escaped(trained(effort, **numbers)) for name, numbers in WITHOUT_CONTROL.items()}
    entropy, held = trained(effort).entropy, escaped(trained(effort, HOLDING))
    halved = (entropy < entropy[:, :1] / 2).argmax(1).astype(float)
    reward = {"GRPO": trained(effort).reward[:, -1], "thermostat": trained(effort, HOLDING).reward[:, -1]}
    return Finding(
        f"share of states out of the trap, {listed(found)}; the entropy halves in {told(halved, 1)} rollouts; "
        f"expected reward at the end {listed(reward)}",
        numbers_of(found | {"rollouts until the entropy halves": halved})
        | numbers_of({f"reward, {name}": values for name, values in reward.items()}),
        *settle(every(below(values, FEW) for values in found.values()) & above(held, 0.5)),
        null=f"{told(held)} of the states",
    )


VARIED: dict[str, tuple[dict[str, Any], ...]] = {
    "target": ({"target": 0.2}, {"target": 0.8}, {"target": 1.4}),
    "group": ({"target": 0.8, "group": 8}, {"target": 0.8}, {"target": 0.8, "group": 32}),
    "lr": ({"target": 0.8, "lr": 0.5}, {"target": 0.8, "lr": 1.0}, {"target": 0.8}),
}
"""Settings of the thermostat, in the order in which the chance of escape should rise."""


@claim(
    "trap-escape",
    paper="Ours",
    source="ours, environment `trap`: an entropy target from the start or later, not found elsewhere",
    words="where the entropy is held, the chance to find the rare arm rises with the entropy, with the size of "
    "the groups and with the learning rate",
    statement=(
        r"P = \Pr\bigl(\pi_T(a^*) > \pi_T(a)\bigr) \ \text{ at } H = H^*:",
        r"\frac{\partial P}{\partial H^*},\ \frac{\partial P}{\partial G},\ \frac{\partial P}{\partial \eta} > 0",
    ),
    assumption="trap, 300 rollouts under the thermostat; targets .2, .8 and 1.4; at .8 nats, G = 8, 16 and 32, and "
    "η = .5, 1 and 2",
    threshold="the share of states out of the trap rises with each step of each of the three in paired runs: the claim "
    "is an order",
    null="GRPO with the smallest and the largest of each",
    expected=HOLDS,
    mutations=(SWITCHED_OFF, WRONG_SIGN, UNPAID),
    live=Live("trap-escape", turned={"pays": 0.3}, conditions=(within("pays", low=0.8),)),
)
def trap_escape(effort: Effort) -> Finding:
    """Groups and learning rates that do not help GRPO help once the entropy is held: each is worth little without time
    to draw the rare arm. The escape is a matter of chance and of time in each state."""
    found = {
        f"{name} {numbers.get(name, SIZE.get(name, 16)):g}": escaped(trained(effort, HOLDING, **numbers))
        for name, settings in VARIED.items()
        for numbers in settings
    }
    rises = every(
        rising(*(escaped(trained(effort, HOLDING, **numbers)) for numbers in settings)) for settings in VARIED.values()
    )
    changed: list[dict[str, Any]] = [{"group": 8}, {"group": 32}, {"lr": 0.5}, {"lr": 2.0}]
    without = {
        f"{name} {value:g}": escaped(trained(effort, **{name: value}))
        for settings in changed
        for name, value in settings.items()
    }
    return Finding(
        f"share of states out of the trap, {listed(found)}", numbers_of(found), *settle(rises), null=listed(without)
    )


CONSTANT = "the coefficient of the bonus is constant"


@claim(
    "trap-late",
    paper="Ours",
    source="ours, environment `trap`: an entropy target from the start or later, not found elsewhere",
    words="once the entropy has collapsed it is too late: control that begins then does not find the rare arm",
    statement=(
        r"P = \Pr\bigl(\pi_{t+300}(a^*) > \pi_{t+300}(a)\bigr),",
        r"H_t \to 0 \ \Rightarrow\ P_t < \tfrac{1}{2} P_0",
    ),
    assumption=f"trap, {FIRST} rollouts of GRPO, then 300 under a thermostat at {TARGET:g} nats or a bonus of "
    f"coefficient {COEFFICIENT:g}",
    threshold=f"too late: in its 300 rollouts control finds the rare arm in at most {TOO_LATE:g} times as many states "
    f"as control from the start; in time: in at least {IN_TIME:g} times as many. A delay of a few rollouts is neither. "
    "Control from the start must find it in more than half of the states, or there is nothing to be late for",
    null="GRPO for 300 rollouts more",
    expected=holds_if(CONSTANT),
    mutations=(
        SWITCHED_OFF,
        Mutation("the bonus were switched off", Swap(EntropyBonus, "transform", OFF)),
        UNPAID,
    ),
    live=Live(
        "trap",
        values={"claimed": "control comes too late", "control": FIXED, "before": 600},
        turned={"control": HOLDING},
        conditions=(within("before", low=300), equals("control", FIXED, stated=False)),
    ),
)
def trap_late(effort: Effort) -> Finding:
    """Nothing is lost for good here, even at .02 nats. A thermostat raises its coefficient until the entropy is back
    and then escapes as often as one that was there from the start. Under a constant bonus the wait grows with the
    collapse, since its force falls with the entropy."""
    found = {
        f"{control}, {name}": escaped(trained(effort, control, before=before))
        for control in (HOLDING, FIXED)
        for name, before in (("from the start", 0), ("late", FIRST))
    }
    held, held_late, fixed, fixed_late = found.values()
    collapsed = trained(effort, rollouts=FIRST).entropy[:, -1]
    late = below(fixed_late - TOO_LATE * fixed) & above(held_late - IN_TIME * held)
    late &= above(held, 0.5) & above(fixed, 0.5)
    return Finding(
        f"share of states out of the trap, {listed(found)}; H is {told(collapsed)} nats when control begins late",
        numbers_of(found | {"H when control begins": collapsed}),
        *settle(below(held_late - TOO_LATE * held) & below(fixed_late - TOO_LATE * fixed), CONSTANT, late),
        null=f"{told(escaped(trained(effort, before=FIRST)))} of the states",
    )


SELDOM = "the best arm is seldom drawn"


@claim(
    "trap-price",
    paper="Ours",
    source="ours, environments `trap` and `noisy`, not found elsewhere",
    words="a policy whose entropy is held ends with more reward than one trained by GRPO",
    statement=r"H \to H^* \ \Rightarrow\ \bar R_T > \bar R_T^{\mathrm{GRPO}}",
    assumption=f"trap and noisy, a thermostat at {TARGET:g} nats",
    threshold="more in both environments, in paired runs; under the condition more in trap and less in noisy: the "
    "claim is an order",
    null=f"a target that falls: {FALLING}",
    expected=holds_if(SELDOM),
    mutations=(OPEN, SWITCHED_OFF, UNPAID),
    live=Live("trap-price", turned={"env": "noisy"}, conditions=(equals("env", "trap", stated=False),)),
)
def trap_price(effort: Effort) -> Finding:
    """In noisy, GRPO finds a right arm anyway, and held entropy only costs: draws of arms that pay less. The price is
    that of entropy at the end, not of having had it: a target that falls keeps the gain and costs nothing."""
    targets: dict[str, dict[str, Any]] = {"held": {}, "falling": {"target": FALLING}}
    gains = {
        (name, env): trained(effort, HOLDING, env, **numbers).reward[:, -1] - trained(effort, GRPO, env).reward[:, -1]
        for name, numbers in targets.items()
        for env in ("trap", "noisy")
    }
    trap, noisy = gains["held", "trap"], gains["held", "noisy"]
    return Finding(
        f"reward − GRPO's at the end, trap {told(trap)}, noisy {told(noisy, 4)}",
        numbers_of({f"{name}, {env}": values for (name, env), values in gains.items()}),
        *settle(above(trap) & above(noisy), SELDOM, above(trap) & below(noisy)),
        null=f"trap {told(gains['falling', 'trap'])}, noisy {told(gains['falling', 'noisy'], 4)}",
    )


@picture("trap-grpo", caption="pass@64 for the rare arm over the rollouts, mean and range of the runs.")
def draw_pass(figure: Figure, effort: Effort) -> None:
    axes, ends = figure.subplots(), []
    for (name, control), style in zip(CONTROLS.items(), series_styles(list(CONTROLS)), strict=True):
        config = sized(effort, {**SIZE, "env": "trap", **control})
        found = simulate(config, range(effort.runs), keep_policies=True).pass_at(64)
        band(axes, found, style.colour)
        ends.append(End(name, (found.shape[1] - 1, float(found[:, -1].mean())), style.colour))
    axes.set(xlabel="rollout", ylabel="pass@64", ylim=(0, 1))
    label_ends(axes, ends)
