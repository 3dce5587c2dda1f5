"""Entropy bonuses, and controllers with a target: Revisiting Entropy, Cheng et al., and the thermostat."""

from typing import Any

from matplotlib.figure import Figure

from ..trajectory import Array
from .checks import Check, Values, below, between, every, numbers_of, rising, settle, told
from .clipping import clipped
from .covariance_rules import monotone
from .feedback import GOAL, SLOW, late, told_errors
from .memory import remember
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, holds_if
from .runs import entropies, side_by_side

PAPER = "Revisiting Entropy"
COEFFICIENTS = (-0.02, 0.0, 0.02, 0.1)
"""Coefficients of the entropy bonus."""
SHAPINGS = (0.1, 0.4, 1.0)
"""Values of α of the entropy advantage."""
HELD = 0.05
"""Largest error that counts as holding the target, nats."""
HOLDERS: dict[str, dict[str, Any]] = {
    "adaptive entropy": {"controller": "adaptive_entropy", "controller_args": {"delta": 0.005, "coef_max": 0.1}},
    "Pos-Adv-Reweight": {"controller": "positive_reweight", "controller_args": {"delta": 0.05}},
    "thermostat": {"controller": "thermostat"},
    "adaptive clip": {"controller": "adaptive_clip", "controller_args": {"delta": 0.05, "eps": 0.2}},
    "STARE": {"controller": "stare", "controller_args": {"delta": 0.01, "both_signs": True}},
}
STOCHASTIC = "rewards are stochastic"


@claim(
    "entropy-bonus",
    paper="Entropy Mechanism",
    source="figure 13",
    assumption="noisy, samples reused in 8 passes",
    predicted="a larger coefficient of the bonus leaves a higher final entropy",
    expected=HOLDS,
)
def entropy_bonus(effort: Effort) -> Finding:
    """A bonus determines the final entropy, but not a value that one could choose beforehand."""
    return monotone(effort, "entropy_bonus", {"coef": COEFFICIENTS})


@claim(
    "entropy-advantage",
    paper="STEER",
    source="section 4, figure 5, on Cheng et al.",
    assumption="noisy, samples reused in 8 passes",
    predicted="entropy as a part of the advantage makes the entropy collapse faster than under GRPO",
    expected=HOLDS,
)
def entropy_advantage(effort: Effort) -> Finding:
    """If the entropy is high, every sample is rewarded more, likely ones most often, and the entropy falls faster."""
    entropy = side_by_side(effort, {"alpha": SHAPINGS}, env="noisy", controller="entropy_advantage")[:, :, -1]
    grpo = clipped(effort)["default .2/.2"][:, -1]
    final = {f"α = {alpha:g}": h for alpha, h in zip(SHAPINGS, entropy, strict=True)}
    measured = ", ".join(f"{name}: {told(h)}" for name, h in final.items())
    return Finding(
        f"final H: {measured}, GRPO: {told(grpo)}",
        numbers_of({**final, "GRPO": grpo}),
        *settle(every(rising(h, grpo) for h in final.values())),
    )


@remember
def held(effort: Effort, name: str, env: str) -> Array:
    """Return the entropy under one of HOLDERS, (runs, rollouts + 1)."""
    return entropies(effort, env=env, target=GOAL, **HOLDERS[name], **length(env))


def length(env: str) -> dict[str, int]:
    """Return the rollouts of a run as a keyword argument, or {} to use the effort's."""
    return SLOW if env == "on" else {}


def holds_target(effort: Effort, name: str, *envs: str) -> tuple[Check, dict[str, Values]]:
    """Check that the error late in the runs is small in all of the environments; also return the errors."""
    errors = {env: late(held(effort, name, env)) - GOAL for env in envs}
    return every(between(error, -HELD, HELD) for error in errors.values()), errors


def holding_finding(effort: Effort, name: str) -> Finding:
    anywhere, errors = holds_target(effort, name, "noisy", "det")
    noisy, _ = holds_target(effort, name, "noisy")
    measured = ", ".join(f"{env} {told(error)}" for env, error in errors.items())
    return Finding(f"H − target: {measured}", numbers_of(errors), *settle(anywhere, STOCHASTIC, noisy))


@claim(
    "adaptive-entropy",
    paper=PAPER,
    source="equations 1 and 2",
    assumption="noisy and det, target .6, the coefficient moves by .005 up to .1",
    predicted="the entropy stays at the target",
    expected=HOLDS,
)
def adaptive_entropy(effort: Effort) -> Finding:
    """A bonus that is switched on below the target works even if rewards do not differ."""
    return holding_finding(effort, "adaptive entropy")


@claim(
    "pos-adv-reweight",
    paper=PAPER,
    source="equation 5",
    assumption="noisy and det, target .6, λ moves by .05",
    predicted="the entropy stays at the target",
    expected=holds_if(STOCHASTIC),
)
def pos_adv_reweight(effort: Effort) -> Finding:
    """Weights on advantages need advantages: once every sample of a state is right, nothing holds its entropy."""
    return holding_finding(effort, "Pos-Adv-Reweight")


@claim(
    "thermostat",
    paper="Ours",
    source="`entrostat.controllers.thermostat`",
    assumption="noisy, on, pure and det, target .6, no tuning",
    predicted="the entropy stays at the target",
    expected=HOLDS,
)
def thermostat(effort: Effort) -> Finding:
    """A bonus that is solved for at every step, from the exact flow of the step without it, holds any target."""
    check, errors = holds_target(effort, "thermostat", "noisy", "on", "pure", "det")
    measured = ", ".join(f"{env} {told(error, 4)}" for env, error in errors.items())
    return Finding(f"H − target: {measured}", numbers_of(errors), *settle(check))


REACH = "the target lies between the entropies with k = 0 and with the largest k"


@claim(
    "adaptive-clip",
    paper="MAI-Thinking-1",
    source="adaptive entropy control",
    assumption="noisy, samples reused in 8 passes, target .6, published values",
    predicted="the entropy stays at the target",
    expected=holds_if(REACH),
)
def adaptive_clip(effort: Effort) -> Finding:
    """With bounds that start at .4 and 2.5, k hardly moves the entropy, which ends below the target. With bounds that
    start at .8 and 1.25 it does, and the loop holds targets within its reach."""
    asked = {"k = 0": 0.0, "k at most": 9.0, "target .6": GOAL}
    published = {
        name: late(entropies(effort, env="noisy", controller="adaptive_clip", target=t)) for name, t in asked.items()
    }
    narrow = HOLDERS["adaptive clip"]
    reach = {
        name: late(entropies(effort, env="noisy", target=asked[name], **narrow)) for name in ("k = 0", "k at most")
    }
    reach["target .6"] = late(held(effort, "adaptive clip", "noisy"))
    measured = "; ".join(
        f"eps {eps}: " + ", ".join(f"{name} {told(values)}" for name, values in found.items())
        for eps, found in ((".6", published), (".2, steps of .05", reach))
    )
    return Finding(
        f"H, {measured}",
        numbers_of(
            {f"eps {eps}, {name}": x for eps, found in ((0.6, published), (0.2, reach)) for name, x in found.items()}
        ),
        *settle(
            between(published["target .6"] - GOAL, -HELD, HELD),
            REACH,
            between(reach["target .6"] - GOAL, -HELD, HELD)
            & rising(reach["k = 0"], reach["target .6"], reach["k at most"])
            & below(published["k at most"], GOAL),
        ),
    )


STARE_WEIGHTS: dict[str, dict[str, Any]] = {
    "W = 1.1": {},
    "W = 1.1, M = .9": {"both_signs": True},
    "W moves": {"delta": 0.01},
}
MOVING = "both weights move with the error"


@claim(
    "stare-target",
    paper="STARE",
    source="sections 4.2 to 4.4",
    assumption="noisy, and strictly on-policy (on), target .6; W = 1.1 on the least likely tenth of A > 0, fixed",
    predicted="the entropy stays at the target",
    expected=holds_if(MOVING),
)
def stare_target(effort: Effort) -> Finding:
    """Fixed weights limit the force of the loop, and training pulls harder. With steps of .01, W up to 1.5 and M down
    to .5 the force suffices, also strictly on-policy, where weights by the sign of A alone have no effect: these
    weights turn the step, since they separate unlikely tokens from likely ones. Without noise, in the end there is
    nothing left to weight."""
    envs = "noisy", "on"
    found = {
        f"{name}, {env}": late(
            entropies(effort, env=env, target=GOAL, controller="stare", controller_args=args, **length(env))
        )
        - GOAL
        for name, args in STARE_WEIGHTS.items()
        for env in envs
    }
    check, both = holds_target(effort, "STARE", *envs)
    _, without_noise = holds_target(effort, "STARE", "det")
    found |= {f"both move, {env}": error for env, error in (both | without_noise).items()}
    fixed = [between(found[f"W = 1.1, {env}"], -HELD, HELD) for env in envs]
    return Finding(told_errors(found), numbers_of(found), *settle(every(fixed), MOVING, check))


@picture("pos-adv-reweight", caption="Mean entropy under controllers with target .6: solid noisy, dashed det.")
def draw_holding(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    for i, name in enumerate(HOLDERS):
        for env, dash in (("noisy", "-"), ("det", "--")):
            label = name if env == "noisy" else None
            axes.plot(held(effort, name, env).mean(0), color=f"C{i}", linestyle=dash, label=label)
    axes.axhline(GOAL, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="mean entropy (nats)", ylim=(0, None))
    axes.legend()
