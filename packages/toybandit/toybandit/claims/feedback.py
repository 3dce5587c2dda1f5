"""EntroPIC in sampled environments, the limits of its actuator, and the stability of its loop."""

from collections.abc import Mapping
from math import inf, log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrostat.controller import Context
from entrostat.controllers.entropic import Entropic
from entrostat.numbers import pi_control
from entrostat.numbers.draws import salt, uniform
from entrostat.numbers.per_run import column
from entrostat.plan import Plan

from ..config import Config
from ..environments import ENVIRONMENTS
from ..problem import draw_problem
from ..simulator import simulate
from ..trajectory import Array
from .checks import Values, above, below, between, numbers_of, settle, told
from .ensembles import entropy as entropy_of
from .entropic import COROLLARY_4_1, PAPER, TARGET, TAU, THEOREM_4_3, alpha_star, expected_step, resting_point
from .live_case import ON_POLICY, REUSED, UNBOUNDED, Live, equals, within
from .memory import remember
from .mutations import Mutation, Swap, always, faults
from .registry import HOLDS, Effort, Finding, claim, holds_if, judge
from .runs import side_by_side, trajectory

STABLE = (r"\text{stable} \iff", r"0 < gK_p < 2, \quad gK_i > 0,", r"2gK_p + gK_i < 4")
"""Condition of stability, in LaTeX."""
GOAL = 0.6
"""Target in sampled environments, nats."""
SLOW = {"rollouts": 300}
"""Length of runs in `on`: with one update per rollout, the entropy moves slowly."""
SETTLED = 0.03
"""Largest error that counts as none, nats."""
GAINS = {"no control": (0.0, 0.0), "P, Kp = 1": (1.0, 0.0), "P, Kp = 4": (4.0, 0.0), "PI": (4.0, 0.05)}


NO_TAU = 0.0
"""τ with which α acts on every token."""
PRESETS = {"sum stops": "paper", "sum goes on": "released"}
"""Presets of EntroPIC with and without anti-windup."""
FAULTS = faults(Entropic)
"""Faults that no loop with EntroPIC can have and hold a target."""


def unlikely_alone(self: Entropic, plan: Plan, context: Context) -> Plan:
    """Return the plan with EntroPIC's weights on tokens with p ≤ .5 only, of the other sign."""
    advantage, p = context.tokens.advantage, context.tokens.get("logp").exp()
    return plan.reweight(1 - column(self.alpha, advantage) * advantage.sign() * (p <= TAU))


def late(entropy: Array) -> Values:
    """Return the mean entropy over the last fifth of each run, (..., rollouts + 1) to (...,)."""
    return entropy[..., -(entropy.shape[-1] // 5) :].mean(-1)


@remember
def controlled(effort: Effort, env: str, tau: float) -> dict[str, Array]:
    """Return the entropy under each of GAINS, (runs, rollouts + 1)."""
    kp, ki = zip(*GAINS.values(), strict=True)
    varied = {"kp": kp, "ki": ki, "tau": [tau] * len(GAINS)}
    entropy = side_by_side(effort, varied, env=env, controller="entropic", target=GOAL, **(SLOW if env == "on" else {}))
    return dict(zip(GAINS, entropy, strict=True))


def errors(effort: Effort, env: str, tau: float) -> dict[str, Values]:
    """Return H − target late in the runs, under each of GAINS."""
    return {name: late(entropy) - GOAL for name, entropy in controlled(effort, env, tau).items()}


def told_errors(found: dict[str, Values]) -> str:
    return "H − target: " + ", ".join(f"{name}: {told(values)}" for name, values in found.items())


@claim(
    "thm4.3-off-policy",
    paper=PAPER,
    source="theorem 4.3",
    words="off-policy, P control leaves an error in the end, and only PI control lets it go to 0",
    statement=r"K_i > 0,\ \tau = 0,\ M > 1 \ \Rightarrow\ H \to H^*",
    assumption="samples reused in 8 passes under a ratio clip (noisy), τ = 0, target .6",
    theorem=THEOREM_4_3,
    setting="the proof has no clip; figure 5 shows a language model with a target of .1",
    threshold=f"over the last fifth of the runs, P control (Kp = 1) at least {SETTLED:g} nats below the target, PI "
    f"within {SETTLED:g}, a twentieth of the target",
    null="no control",
    expected=HOLDS,
    mutations=(
        *FAULTS,
        Mutation("PI were P with Kp = 1", Swap(GAINS, "PI", always((1.0, 0.0)))),
    ),
    live=Live(
        "feedback",
        values={"tau": 0.0},
        turned={"passes": 1, "lr": 2.0},
        conditions=(REUSED, equals("tau", 0), within("ki", low=0.01)),
    ),
)
def off_policy(effort: Effort) -> Finding:
    """Off-policy, P control stops short of the target and PI reaches it; the cause is the drift of the entropy, as in
    theorem 4.2, not the reuse of samples."""
    found = errors(effort, "noisy", 0.0)
    check = below(found["P, Kp = 1"], -SETTLED) & between(found["PI"], -SETTLED, SETTLED)
    return Finding(
        told_errors(found), numbers_of(found), *settle(check), null=f"H − target {told(found['no control'])}"
    )


@claim(
    "thm4.3-on-policy",
    paper=PAPER,
    source="theorems 4.2 and 4.3",
    words="on-policy, P control suffices for the error to go to 0",
    statement=r"K_i = 0,\ M = 1 \ \Rightarrow\ H \to H^*",
    assumption="strictly on-policy (on), τ = .5, target .6",
    theorem=THEOREM_4_3,
    setting="a language model with a target of .1",
    threshold=f"within {SETTLED:g} nats, a twentieth of the target, over the last fifth of the runs",
    null="no control",
    expected=holds_if("there is an integral part"),
    mutations=(
        *FAULTS,
        Mutation("PI were P with Kp = 1", Swap(GAINS, "PI", always((1.0, 0.0)))),
    ),
    live=Live(
        "feedback",
        values={"passes": 1, "lr": 2.0},
        turned={"ki": 0.0},
        conditions=(ON_POLICY, equals("tau", 0.5), within("ki", low=0.01, stated=False)),
    ),
)
def on_policy(effort: Effort) -> Finding:
    """Sampled and on-policy, P control also leaves an error, because the entropy drifts; PI leaves none."""
    found = errors(effort, "on", 0.5)
    p, pi = between(found["P, Kp = 1"], -SETTLED, SETTLED), between(found["PI"], -SETTLED, SETTLED)
    return Finding(
        told_errors(found),
        numbers_of(found),
        *settle(p, "there is an integral part", pi),
        null=f"H − target {told(found['no control'])}",
    )


@claim(
    "tau-zero",
    paper=PAPER,
    source="section 4.2, without a threshold; the verdict is ours, by cor4.1-collinear",
    words="weights by the sign of A on all tokens, as in section 4.2, cannot hold a target on-policy",
    statement=(r"\tau = 0,\ M = 1 \ \Rightarrow", r"H < H^* - 0.2, \quad |\alpha| \to \infty"),
    assumption="strictly on-policy (on), τ = 0, binary rewards",
    theorem=COROLLARY_4_1,
    threshold="the entropy ends more than .2 nats below the target with P and PI, and |α| of unbounded PI grows by "
    "more than 1 over the second half: far more than the error of any loop here that works",
    null="the same PI loop on tokens with p > .5, which holds the target",
    expected=HOLDS,
    mutations=(
        Mutation("τ were .5", Swap(__name__, "NO_TAU", always(0.5))),
        Mutation("α moved unlikely tokens alone", Swap(Entropic, "transform", always(unlikely_alone))),
    ),
    live=Live(
        "feedback",
        values={"claimed": "lost: falls past the target", "tau": 0.0, "passes": 1, "lr": 2.0, "alpha_max": 10.0},
        turned={"tau": 0.5},
        conditions=(ON_POLICY, equals("tau", 0)),
    ),
)
def no_authority(effort: Effort) -> Finding:
    """Weights by the sign of A cannot turn the expected step, so with τ = 0 the loop pulls without effect."""
    varied = {"kp": [0.0, 4.0, 4.0], "ki": [0.0, 0.0, 0.05], "tau": [NO_TAU] * 3, "alpha_max": [1.0, 1e9, 1e9]}
    none, p, pi = late(side_by_side(effort, varied, env="on", controller="entropic", target=GOAL, **SLOW))
    bounded = errors(effort, "on", NO_TAU)["PI"] + GOAL
    found = {"no control": none, "P, Kp = 4, α unbounded": p, "PI, α unbounded": pi, "PI": bounded}
    check = below(p, GOAL - 0.2) & below(pi, GOAL - 0.2) & below(bounded, GOAL - 0.2)
    size, grip = unbounded_alpha(effort), errors(effort, "on", TAU)["PI"]
    check &= above(size[-1] - size[0], 1.0)
    return Finding(
        "H: " + ", ".join(f"{name}: {told(values)}" for name, values in found.items()) + f" (target {GOAL}); "
        f"|α| of unbounded PI {told(size[0], 1)} half-way, {told(size[-1], 1)} at the end",
        numbers_of({f"H, {name}": values for name, values in found.items()} | {"|α| at the end": size[-1]}),
        *settle(check & between(grip, -0.1, 0.1)),
        null=f"H − target {told(grip)}",
    )


def unbounded_alpha(effort: Effort) -> Array:
    """Return |α| of PI control in `on` with τ = 0 and no bound, half-way and at the end, (2, runs)."""
    args = {"kp": 4.0, "ki": 0.05, "tau": NO_TAU, "alpha_max": 1e9}
    run = trajectory(effort, env="on", controller="entropic", target=GOAL, controller_args=args, **SLOW)
    alpha = run.metrics["entropic/alpha"]
    return np.abs(alpha[:, [alpha.shape[1] // 2, -1]].T)


@claim(
    "tau-below-top",
    paper=PAPER,
    source="section 4.3 and 5.1, τ = .95",
    words="it is enough to control tokens with p > .95",
    statement=r"\tau = 0.95 \ \Rightarrow\ H \to H^*",
    assumption="noisy, target .6",
    setting="a language model, target .1, where e^(−target) = .90 and most tokens are likelier than .95",
    threshold=f"within {SETTLED:g} nats, a twentieth of the target, over the last fifth of the runs",
    null="no control",
    expected=holds_if("τ lies below the top probabilities at the target"),
    mutations=FAULTS,
    live=Live(
        "feedback",
        turned={"tau": 0.95},
        conditions=(REUSED, within("tau", high=0.8, stated=False)),
    ),
)
def tau_below_top(effort: Effort) -> Finding:
    """The controller acts only on tokens likelier than τ: if few are left at the target, it has no effect."""
    taus = [0.5, 0.8, 0.95]
    varied = {"kp": [4.0] * 3, "ki": [0.05] * 3, "tau": taus}
    entropy = side_by_side(effort, varied, env="noisy", controller="entropic", target=GOAL)
    found = {f"τ = {tau:g}": late(h) - GOAL for tau, h in zip(taus, entropy, strict=True)}
    stated, condition = (between(found[name], -SETTLED, SETTLED) for name in ("τ = 0.95", "τ = 0.5"))
    return Finding(
        f"{told_errors(found)}; e^(−target) = {np.exp(-GOAL):.2f}",
        numbers_of(found),
        *settle(stated, "τ lies below the top probabilities at the target", condition),
        null=f"H − target {told(errors(effort, 'noisy', 0.0)['no control'])}",
    )


@claim(
    "windup",
    paper=PAPER,
    source="on the released code; windup is textbook control, for this loop not found elsewhere",
    words="the sum of errors needs no bound",
    statement=(r"S_{t+1} = S_t + e_t \ \text{ without a bound} \ \Rightarrow", r"\min_t H_t > H^* - 0.1"),
    assumption="noisy, starts far above the target of .3, τ = .8, Kp = 4, Ki = .05",
    threshold="lowest mean entropy of a run at most .1 nats below the target, a third of it",
    null="P control alone, whose α cannot wind up",
    expected=holds_if("the sum stops while α is saturated"),
    mutations=(
        Mutation("anti-windup were missing", Swap(PRESETS, "sum stops", always("released"))),
        Mutation("both had it", Swap(PRESETS, "sum goes on", always("paper"))),
    ),
    live=Live("windup", turned={"anti_windup": False}, conditions=(equals("anti_windup", True, stated=False),)),
)
def windup(effort: Effort) -> Finding:
    """While α is saturated, the sum keeps growing and pushes the entropy far below the target before it is undone."""
    target, found = 0.3, {}
    varied = {"kp": [4.0], "ki": [0.05], "tau": [0.8]}
    for name, preset in PRESETS.items():
        (entropy,) = side_by_side(
            effort, varied, env="noisy", controller="entropic", preset=preset, target=target, rollouts=150
        )
        found[name] = target - entropy.min(-1)
    varied["ki"] = [0.0]
    (entropy,) = side_by_side(effort, varied, env="noisy", controller="entropic", target=target, rollouts=150)
    alone = target - entropy.min(-1)
    stated, condition = (below(found[name], 0.1) for name in ("sum goes on", "sum stops"))
    return Finding(
        "falls below the target by " + ", ".join(f"{told(values)} when the {name}" for name, values in found.items()),
        numbers_of({f"undershoot, {name}": values for name, values in found.items()}),
        *settle(stated, "the sum stops while α is saturated", condition),
        null=f"falls below the target by {told(alone)}",
    )


def proportional_limit(g: Tensor, kp: Tensor, ki: Tensor) -> Tensor:
    """Return True for loops within the limits of P control, with a positive integral gain."""
    return (g * kp > 0) & (g * kp < 2) & (g * ki > 0)


def older_sum(g: Tensor, kp: Tensor, ki: Tensor) -> Tensor:
    """Return the matrix of the loop whose action uses the sum before the new error, (..., 2, 2)."""
    one = torch.ones_like(g)
    return torch.stack([torch.stack([1 - g * kp, -g * ki], -1), torch.stack([one, one], -1)], -2)


def stability_mismatches(loops: int) -> tuple[int, int]:
    """Count random loops e⁺ = e + d − g·(Kp·e + Ki·S⁺) whose spectral radius contradicts condition and null."""
    index = torch.arange(loops)
    s, c, g = (uniform(salt(name), index) for name in ("g·Kp", "g·Ki", "g"))
    s, c, g = 3 * s - 0.5, 5 * c - 0.5, 3 * g + 0.01
    radius = torch.linalg.eigvals(pi_control.transition(g, s / g, c / g)).abs().amax(-1)
    conditions = pi_control.stable(g, s / g, c / g), proportional_limit(g, s / g, c / g)
    wrong, of_null = (int(((radius < 1) != condition).sum()) for condition in conditions)
    return wrong, of_null


@claim(
    "pi-stability-linear",
    paper=PAPER,
    source="on theorem 4.3, by Jury's criterion, which is textbook control",
    words="PI control is stable if and only if 0 < gKp < 2, gKi > 0 and 2gKp + gKi < 4",
    statement=STABLE,
    assumption="e⁺ = e + d − g(Kp·e + Ki·S⁺), S⁺ = S + e",
    theorem=THEOREM_4_3,
    setting="the proof in appendix A.2 asks for small learning rates and moderate gains",
    threshold="the condition and a spectral radius below 1 agree on every random loop",
    null="the condition of P control alone, 0 < gKp < 2",
    expected=HOLDS,
    mutations=(
        Mutation("2gKp + gKi < 4 were left out", Swap(pi_control, "stable", always(proportional_limit))),
        Mutation("it were 2gKp + gKi < 3", Swap(pi_control, "stable", lambda f: lambda g, p, i: f(g * 4 / 3, p, i))),
        Mutation("S had no new error in it", Swap(pi_control, "transition", always(older_sum))),
    ),
    live=Live("linear-loop", turned={"alpha_max": 0.02}, conditions=(UNBOUNDED,)),
)
def linear_stability(effort: Effort) -> Finding:
    """PI control has a largest gain: beyond it the loop overshoots by more than it corrects."""
    loops = 50 * effort.instances
    wrong, of_null = stability_mismatches(loops)
    return Finding(
        f"{wrong} of {loops:,} random loops have a spectral radius that contradicts the condition",
        {"mismatches": float(wrong), "mismatches of the null": float(of_null), "loops": float(loops)},
        judge(wrong == 0 < of_null),
        null=f"{of_null:,} contradict it",
    )


LINES = {"gKi = .3": ("Kp", 0.3), "gKi = 1": ("Kp", 1.0), "gKp = .1": ("Ki", 0.1), "gKp = .5": ("Ki", 0.5)}
"""Lines in the plane of (gKp, gKi): the gain whose limit is sought, and g times the other gain."""
RATIOS = np.linspace(0.8, 1.2, 41)
"""Gains to try, relative to the predicted limit."""


def resting_logit() -> float:
    """Return the logit of the right arm of `exact`, relative to the others, at which H is the target."""
    p = float(resting_point(inf))
    return log(p / (1 - p)) + log(ENVIRONMENTS["exact"].arms - 1)


def plant_gain(lr: float) -> float:
    """Return g of `exact`: decrease of entropy in a rollout per unit of α, at the target."""
    config = Config(env="exact", right_logit=resting_logit())
    logits, success = draw_problem(config.environment(), torch.zeros(1, dtype=torch.int64), torch.float64)

    def after(alpha: Tensor) -> Tensor:
        return entropy_of(logits + lr * expected_step(logits, success, alpha.reshape(1), TAU))

    alpha, half = -alpha_star(resting_point(inf)), 1e-3
    return float(((after(alpha - half) - after(alpha + half)) / (2 * half)).squeeze())


def exact_loops(args: Mapping[str, Any], lr: float, rollouts: int) -> Array:
    """Return the entropy in `exact`, started at the target, under EntroPIC, (loops, rollouts + 1).

    args: hyperparameters, with one value per loop or one for all.
    """
    config = Config(
        env="exact",
        controller="entropic",
        target=TARGET,
        controller_args=args,
        lr=lr,
        right_logit=resting_logit(),
        rollouts=rollouts,
    )
    return simulate(config, [0] * len(args["kp"])).entropy


@remember
def found_limits(lr: float) -> dict[str, float]:
    """Return the largest of RATIOS on each of LINES at which PI control returns to the target in `exact`."""
    g = plant_gain(lr)
    kp, ki = [], []
    for sought, other in LINES.values():
        limit = (4 - other) / 2 if sought == "Kp" else 4 - 2 * other
        tried, fixed = RATIOS * limit / g, np.full_like(RATIOS, other / g)
        kp += list(tried if sought == "Kp" else fixed)
        ki += list(fixed if sought == "Kp" else tried)
    args = {"kp": kp, "ki": ki, "tau": TAU, "alpha_max": 1e9}
    entropy = exact_loops(args, lr, 1000)[:, -100:]
    settled = (np.abs(entropy - TARGET).max(-1) < 1e-2).reshape(len(LINES), -1)
    return {name: float(RATIOS[row].max(initial=0.0)) for name, row in zip(LINES, settled, strict=True)}


@claim(
    "pi-stability-exact",
    paper=PAPER,
    source="on theorem 4.3: the comparison is ours, not found elsewhere",
    words="the limits of the linear loop, with g measured at the target, are those of the bandit",
    statement=(*STABLE, r"g = -\frac{\partial\, \Delta H}{\partial \alpha}\Big|_{H^*}"),
    assumption="exact environment near the target, α not bounded",
    theorem=THEOREM_4_3,
    threshold="the largest gain that returns to the target within 10% of the limit, on four lines and at two learning "
    "rates: the tried gains are 1% apart",
    null="the limits with one gain alone, gKp < 2 and gKi < 4",
    expected=HOLDS,
    mutations=(
        Mutation("g were half as large", Swap(__name__, "plant_gain", lambda f: lambda lr: f(lr) / 2)),
        Mutation("g did not grow with the learning rate", Swap(__name__, "plant_gain", lambda f: lambda lr: f(0.5))),
    ),
    live=Live("exact-loop", turned={"alpha_max": 0.3}, conditions=(UNBOUNDED,)),
)
def nonlinear_stability(effort: Effort) -> Finding:
    """The largest stable gains follow from one number, the decrease of entropy per unit of α."""
    ratios = {f"{name}, η = {lr:g}": ratio for lr in (0.5, 2.0) for name, ratio in found_limits(lr).items()}
    gains = {f"g, η = {lr:g}": plant_gain(lr) for lr in (0.5, 2.0)}
    shares = [other / (4 - other) if sought == "Kp" else other / (2 - other) for sought, other in LINES.values()]
    worst = max(abs(ratio - 1) for ratio in ratios.values())
    return Finding(
        f"largest stable gain / limit, in steps of .01: {min(ratios.values()):.2f} to {max(ratios.values()):.2f} "
        f"({', '.join(f'{name}: {g:.4f}' for name, g in gains.items())})",
        ratios | gains,
        judge(worst <= 0.1),
        null=f"off by {min(shares):.0%} to {max(shares):.0%}",
    )
