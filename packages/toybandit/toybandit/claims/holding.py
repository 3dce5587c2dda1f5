"""Entropy bonuses, and controllers with a target: Revisiting Entropy, Cheng et al., and the thermostat."""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.figure import Figure

from entrostat.controller import Context
from entrostat.controllers.bonus import AdaptiveEntropy, EntropyBonus
from entrostat.controllers.entropy_advantage import EntropyAdvantage
from entrostat.controllers.positive import PositiveReweight
from entrostat.controllers.stare import Stare
from entrostat.controllers.thermostat import Thermostat
from entrostat.numbers.per_run import column
from entrostat.plan import Plan
from entrostat.surrogates.adaptive_clip import AdaptiveClip

from ..trajectory import Array
from .checks import Check, Values, below, between, every, numbers_of, rising, settle, told
from .clipping import clipped
from .covariance_rules import final_entropies, told_finals
from .feedback import GOAL, SLOW, late, told_errors
from .live_case import NOISY, REUSED, Live, equals, within
from .memory import remember
from .mutations import OFF, Mutation, Swap, always, faults, mirrored, negated
from .pictures import panels, picture
from .registry import HOLDS, Effort, Finding, claim, holds_if
from .runs import entropies, side_by_side
from .theorems import Theorem

PAPER = "Revisiting Entropy"
COEFFICIENTS = (-0.02, 0.0, 0.02, 0.1)
"""Coefficients of the entropy bonus."""
SHAPINGS = (0.1, 0.4, 1.0)
"""Values of α of the entropy advantage."""
HELD = 0.05
"""Largest error that counts as holding the target, nats."""
NEAR = (
    f"mean error over the last fifth of the runs within {HELD:g} nats, a twelfth of the target: papers show curves "
    "around a target, without numbers"
)
FIXED = 0.03
"""Coefficient of the bonus that comes near the target in `noisy`."""
FIXED_BONUS: dict[str, Any] = {"controller_args": {"coef": FIXED}}
HOLDERS: dict[str, dict[str, Any]] = {
    "adaptive entropy": {"controller": "adaptive_entropy", "controller_args": {"delta": 0.005, "coef_max": 0.1}},
    "Pos-Adv-Reweight": {"controller": "positive_reweight", "controller_args": {"delta": 0.05}},
    "thermostat": {"controller": "thermostat"},
    "adaptive clip": {"controller": "adaptive_clip", "controller_args": {"delta": 0.05, "eps": 0.2}},
    "STARE": {"controller": "stare", "controller_args": {"delta": 0.01, "both_signs": True}},
}
STOCHASTIC = "rewards are stochastic"


def punishing(self: EntropyBonus, plan: Plan, context: Context) -> Plan:
    """Return the plan with a penalty on the entropy in place of the bonus."""
    return plan.add_entropy_bonus(-column(self.coef, context.tokens.advantage))


def subtracting(self: EntropyAdvantage, plan: Plan, context: Context) -> Plan:
    """Return the plan with the entropy subtracted from the advantage, within the same limit."""
    advantage = context.tokens.advantage
    term = column(self.alpha, advantage) * context.tokens.get("entropy")
    return plan.shape(advantage - torch.minimum(term, advantage.abs() / column(self.kappa, advantage)))


EQUATIONS_3_AND_4 = Theorem(
    name="Revisiting Entropy, equations 3 and 4",
    test="test_revisiting_entropy_equations_3_and_4.py",
    derivation=(
        "∂ log p_a/∂z_b = 1[a = b] − p_b, so A > 0 raises the sampled logit and lowers the others.",
        "The probability of a rises by p_a[(1 − p_a)² + Σ_{b≠a} p_b²] per unit of η·A.",
        "That of another arm b falls by p_b(p_a + p_b − S2): it rises where p_a + p_b < S2.",
    ),
)


@claim(
    "entropy-bonus",
    paper="Entropy Mechanism",
    source="appendix E, figure 13",
    words="the entropy is highly sensitive to the coefficient of the bonus; larger ones leave more",
    statement=(r"\mathcal{L} - c\, H:", r"c_1 < c_2 \ \Rightarrow\ H_{\mathrm{end}}(c_1) < H_{\mathrm{end}}(c_2)"),
    assumption="noisy, samples reused in 8 passes",
    setting="a language model, with coefficients of its own",
    threshold="final H rises with each coefficient in paired runs: the paper ranks curves",
    null="no bonus",
    expected=HOLDS,
    mutations=(
        Mutation("the bonus had the other sign", Swap(EntropyBonus, "transform", always(punishing))),
        Mutation("there were no bonus", Swap(EntropyBonus, "transform", OFF)),
    ),
    live=Live(
        "bonus",
        turned={"largest": 4.0, "lr": 8.0},
        conditions=(NOISY, REUSED, within("lr", high=2)),
    ),
)
def entropy_bonus(effort: Effort) -> Finding:
    """A bonus determines the final entropy, but not a value that one could choose beforehand."""
    final = final_entropies(effort, "entropy_bonus", {"coef": COEFFICIENTS})
    none = final["coef = 0"]
    return Finding(
        f"final H: {told_finals(final)}",
        numbers_of(final),
        *settle(rising(*final.values())),
        null=f"final H {told(none)}",
    )


@claim(
    "entropy-advantage",
    paper="STEER",
    source="section 4, figure 5, on Cheng et al.",
    words="entropy as a part of the advantage makes the entropy collapse faster than under GRPO",
    statement=(
        r"A + \min\bigl(\alpha H, \tfrac{|A|}{\kappa}\bigr):",
        r"H_{\mathrm{end}} < H_{\mathrm{end}}^{\mathrm{GRPO}}",
    ),
    assumption="noisy, samples reused in 8 passes",
    setting="a language model",
    threshold="final H below GRPO's for each α, in paired runs: the papers compare curves",
    null="GRPO",
    expected=HOLDS,
    mutations=(
        Mutation("the entropy were subtracted", Swap(EntropyAdvantage, "transform", always(subtracting))),
        Mutation("nothing were added", Swap(EntropyAdvantage, "transform", OFF)),
    ),
    live=Live(
        "bonus",
        values={"way": "part of the advantage", "largest": 1.0},
        turned={"passes": 1},
        conditions=(NOISY, REUSED),
    ),
)
def entropy_advantage(effort: Effort) -> Finding:
    """If the entropy is high, every sample is rewarded more, likely ones most often, and the entropy falls faster."""
    entropy = side_by_side(effort, {"alpha": SHAPINGS}, env="noisy", controller="entropy_advantage")[:, :, -1]
    grpo = clipped(effort)["default .2/.2"][:, -1]
    final = {f"α = {alpha:g}": h for alpha, h in zip(SHAPINGS, entropy, strict=True)}
    measured = ", ".join(f"{name}: {told(h)}" for name, h in final.items())
    return Finding(
        f"final H: {measured}",
        numbers_of({**final, "GRPO": grpo}),
        *settle(every(rising(h, grpo) for h in final.values())),
        null=f"final H {told(grpo)}",
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


@remember
def uncontrolled(effort: Effort, *envs: str) -> dict[str, Values]:
    """Return the error late in the runs under GRPO."""
    return {env: late(entropies(effort, env=env, **length(env))) - GOAL for env in envs}


def holding_finding(effort: Effort, name: str) -> Finding:
    anywhere, errors = holds_target(effort, name, "noisy", "det")
    noisy, _ = holds_target(effort, name, "noisy")
    measured = ", ".join(f"{env} {told(error)}" for env, error in errors.items())
    return Finding(
        f"H − target: {measured}",
        numbers_of(errors),
        *settle(anywhere, STOCHASTIC, noisy),
        null=told_errors(uncontrolled(effort, *errors)),
    )


@claim(
    "adaptive-entropy",
    paper=PAPER,
    source="section 3.2, equations 1 and 2, figure 1",
    words="the bonus that is on below the target keeps the entropy from falling below it; it falls first, then "
    "fluctuates around the target",
    statement=(
        r"\mathcal{L} - c_t\, \mathbf{1}[H < H^*]\, H, \quad c_{t+1} = c_t \pm \delta",
        r"\Rightarrow\ H \to H^*",
    ),
    assumption="noisy and det, target .6, the coefficient moves by .005 up to .1",
    setting="Qwen2.5-Math-7B, target .37, the entropy before training",
    threshold=NEAR,
    null="GRPO",
    expected=HOLDS,
    mutations=faults(AdaptiveEntropy),
    live=Live(
        "holding",
        values={"controller": "adaptive entropy", "rollouts": 80, "passes": 4},
        turned={"env": "pure"},
        conditions=(equals("env", "noisy", "det"), within("target", high=1)),
    ),
)
def adaptive_entropy(effort: Effort) -> Finding:
    """A bonus that is switched on below the target works even if rewards do not differ."""
    return holding_finding(effort, "adaptive entropy")


@claim(
    "pos-adv-reweight",
    paper=PAPER,
    source="section 7.3, equation 5, figure 5",
    words="a weight on tokens with A > 0 that follows the entropy maintains it around the target",
    statement=(r"A > 0:\ A \to \lambda_t A, \quad \lambda_{t+1} = \lambda_t \pm \delta", r"\Rightarrow\ H \to H^*"),
    assumption="noisy and det, target .6, λ moves by .05",
    theorem=EQUATIONS_3_AND_4,
    setting="Qwen2.5-Math-7B, target .2",
    threshold=NEAR,
    null="GRPO",
    expected=holds_if(STOCHASTIC),
    mutations=faults(PositiveReweight),
    live=Live(
        "holding",
        values={"controller": "Pos-Adv-Reweight", "rollouts": 80, "passes": 4},
        turned={"env": "det"},
        conditions=(equals("env", "noisy", stated=False), within("target", high=1)),
    ),
)
def pos_adv_reweight(effort: Effort) -> Finding:
    """Weights on advantages need advantages: once every sample of a state is right, nothing holds its entropy."""
    return holding_finding(effort, "Pos-Adv-Reweight")


@claim(
    "thermostat",
    paper="Ours",
    source="`entrostat.controllers.thermostat`; the flow is theorem 3.3 of arXiv 2602.03392. Ours is its use, not "
    "found elsewhere: a coefficient that is solved for a wanted flow, from all terms of an update",
    words="the bonus that is solved for in each step holds the entropy at the target in every environment",
    statement=(
        r"\mathcal{L} - \mu_t H, \quad \mu_t = \frac{k\,(H^* - H)/\kappa - \bar\varphi}{\bar F}",
        r"\Rightarrow\ H \to H^*",
    ),
    assumption="noisy, on, pure and det, target .6, no tuning",
    threshold=NEAR,
    null=f"one fixed coefficient of the bonus, {FIXED:g}",
    expected=HOLDS,
    mutations=(
        Mutation("the wanted flow had the other sign", Swap(Thermostat, "wanted_flow", negated)),
        Mutation("the controller were switched off", Swap(Thermostat, "transform", OFF)),
    ),
    live=Live("holding", turned={"target": 2.9}, conditions=(within("target", high=2.6),)),
)
def thermostat(effort: Effort) -> Finding:
    """A bonus that is solved for at every step, from the exact flow of the step without it, holds any target."""
    check, errors = holds_target(effort, "thermostat", "noisy", "on", "pure", "det")
    measured = ", ".join(f"{env} {told(error, 4)}" for env, error in errors.items())
    fixed = {
        env: entropies(effort, env=env, controller="entropy_bonus", **FIXED_BONUS, **length(env)) for env in errors
    }
    return Finding(
        f"H − target: {measured}",
        numbers_of(errors),
        *settle(check),
        null=told_errors({env: late(entropy) - GOAL for env, entropy in fixed.items()}),
    )


def without_k(bounds: Callable[[AdaptiveClip], tuple[Any, Any, Any]]) -> Callable[[AdaptiveClip], tuple[Any, Any, Any]]:
    """Return the ratio bounds at k = 0."""
    return lambda self: (1 - self.eps, 1 / (1 - self.eps), self.dual_clip)


REACH = "the target lies between the entropies with k = 0 and with the largest k"


@claim(
    "adaptive-clip",
    paper="MAI-Thinking-1",
    source="adaptive entropy control",
    words="an upper bound of the ratio that follows the entropy controls it",
    statement=(
        r"r \in [1 - \varepsilon,\ (1 - \varepsilon)^{-1} + k],",
        r"\Delta k = \delta \operatorname{sign}(H^* - H) \ \Rightarrow\ H \to H^*",
    ),
    assumption="noisy, samples reused in 8 passes, target .6, published values",
    threshold=NEAR,
    null="k = 0, the bounds without the loop",
    expected=holds_if(REACH),
    mutations=(
        Mutation("the error had the other sign", Swap(AdaptiveClip, "observe", mirrored)),
        Mutation("k did not reach the bound", Swap(AdaptiveClip, "ratio_bounds", without_k)),
    ),
    live=Live(
        "holding",
        values={"controller": "adaptive clip", "passes": 8, "target": 0.9},
        turned={"target": 2.0},
        conditions=(NOISY, within("target", low=0.8, high=0.95, stated=False)),
    ),
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
        null=f"H {told(published['k = 0'])} with eps .6, {told(reach['k = 0'])} with .2",
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
    words="more weight on the least likely successes while the entropy is below the target keeps it there",
    statement=(
        r"A > 0,\ p \text{ among the least likely tenth}:\ A \to 1.1\, A \ \text{ if } H < H^*",
        r"\Rightarrow\ H \to H^*",
    ),
    assumption="noisy, and strictly on-policy (on), target .6; W = 1.1 on the least likely tenth of A > 0, fixed",
    setting="language models",
    threshold=NEAR,
    null="GRPO",
    expected=holds_if(MOVING),
    mutations=(
        *faults(Stare),
        Mutation(
            "the weights fell on all tokens of a sign",
            Swap(Stare, "_least_likely", always(lambda self, among, context: among)),
        ),
    ),
    live=Live(
        "holding",
        values={"controller": "STARE", "rollouts": 80, "passes": 4},
        turned={"speed": 0.5},
        conditions=(
            equals("env", "noisy", "on"),
            within("speed", low=2, stated=False),
            within("target", low=0.5, high=0.7, stated=False),
        ),
    ),
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
    return Finding(
        told_errors(found),
        numbers_of(found),
        *settle(every(fixed), MOVING, check),
        null=told_errors(uncontrolled(effort, *envs)),
    )


@picture("pos-adv-reweight", caption="Mean entropy under controllers with target .6 (dotted), in noisy and in det.")
def draw_holding(figure: Figure, effort: Effort) -> None:
    for axes in panels(figure, {env: {name: held(effort, name, env) for name in HOLDERS} for env in ("noisy", "det")}):
        axes.axhline(GOAL, color="black", linewidth=0.8, linestyle=":")
