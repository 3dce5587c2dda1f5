"""EntroPIC in sampled environments, the limits of its actuator, and the stability of its loop."""

from collections.abc import Mapping
from math import inf, log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrostat import pi_control
from entrostat.draws import salt, uniform

from ..config import Config
from ..environments import ENVIRONMENTS
from ..problem import draw_problem
from ..simulator import simulate
from ..trajectory import Array
from .checks import Values, above, below, between, numbers_of, settle, told
from .ensembles import entropy as entropy_of
from .entropic import PAPER, TARGET, TAU, alpha_star, expected_step, resting_point
from .memory import remember
from .registry import HOLDS, Effort, Finding, claim, holds_if, judge
from .runs import side_by_side, trajectory

GOAL = 0.6
"""Target in sampled environments, nats."""
SLOW = {"rollouts": 300}
"""Length of runs in `on`: with one update per rollout, the entropy moves slowly."""
SETTLED = 0.03
"""Largest error that counts as none, nats."""
GAINS = {"no control": (0.0, 0.0), "P, Kp = 1": (1.0, 0.0), "P, Kp = 4": (4.0, 0.0), "PI": (4.0, 0.05)}


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
    assumption="samples reused in 8 passes under a ratio clip (noisy), τ = 0, target .6",
    predicted="P control leaves an error, PI control none",
    expected=HOLDS,
)
def off_policy(effort: Effort) -> Finding:
    """Off-policy, P control stops short of the target and PI reaches it; the cause is the drift of the entropy, as in
    theorem 4.2, not the reuse of samples."""
    found = errors(effort, "noisy", 0.0)
    check = below(found["P, Kp = 1"], -SETTLED) & between(found["PI"], -SETTLED, SETTLED)
    return Finding(told_errors(found), numbers_of(found), *settle(check))


@claim(
    "thm4.3-on-policy",
    paper=PAPER,
    source="theorems 4.2 and 4.3",
    assumption="strictly on-policy (on), τ = .5, target .6",
    predicted="P control suffices: no error",
    expected=holds_if("there is an integral part"),
)
def on_policy(effort: Effort) -> Finding:
    """Sampled and on-policy, P control also leaves an error, because the entropy drifts; PI leaves none."""
    found = errors(effort, "on", 0.5)
    p, pi = between(found["P, Kp = 1"], -SETTLED, SETTLED), between(found["PI"], -SETTLED, SETTLED)
    return Finding(told_errors(found), numbers_of(found), *settle(p, "there is an integral part", pi))


@claim(
    "tau-zero",
    paper=PAPER,
    source="section 4 with τ = 0; ours",
    assumption="strictly on-policy (on), τ = 0, binary rewards",
    predicted="no control authority: the entropy falls past the target by more than .2, and α grows without bound",
    expected=HOLDS,
)
def no_authority(effort: Effort) -> Finding:
    """Weights by the sign of A cannot turn the expected step, so with τ = 0 the loop pulls without effect."""
    varied = {"kp": [0.0, 4.0, 4.0], "ki": [0.0, 0.0, 0.05], "tau": [0.0] * 3, "alpha_max": [1.0, 1e9, 1e9]}
    none, p, pi = late(side_by_side(effort, varied, env="on", controller="entropic", target=GOAL, **SLOW))
    bounded = errors(effort, "on", 0.0)["PI"] + GOAL
    found = {"no control": none, "P, Kp = 4, α unbounded": p, "PI, α unbounded": pi, "PI": bounded}
    check = below(p, GOAL - 0.2) & below(pi, GOAL - 0.2) & below(bounded, GOAL - 0.2)
    size = unbounded_alpha(effort)
    check &= above(size[-1] - size[0], 1.0)
    return Finding(
        "H: " + ", ".join(f"{name}: {told(values)}" for name, values in found.items()) + f" (target {GOAL}); "
        f"|α| of unbounded PI {told(size[0], 1)} half-way, {told(size[-1], 1)} at the end",
        numbers_of({f"H, {name}": values for name, values in found.items()} | {"|α| at the end": size[-1]}),
        *settle(check),
    )


def unbounded_alpha(effort: Effort) -> Array:
    """Return |α| of PI control in `on` with τ = 0 and no bound, half-way and at the end, (2, runs)."""
    args = {"kp": 4.0, "ki": 0.05, "tau": 0.0, "alpha_max": 1e9}
    run = trajectory(effort, env="on", controller="entropic", target=GOAL, controller_args=args, **SLOW)
    alpha = run.metrics["entropic/alpha"]
    return np.abs(alpha[:, [alpha.shape[1] // 2, -1]].T)


@claim(
    "tau-below-top",
    paper=PAPER,
    source="section 4 with τ = .95",
    assumption="noisy, target .6",
    predicted="PI control holds the target",
    expected=holds_if("τ lies below the top probabilities at the target"),
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
    )


@claim(
    "windup",
    paper=PAPER,
    source="the released code",
    assumption="noisy, starts far above the target of .3, τ = .8, Kp = 4, Ki = .05",
    predicted="the sum of errors needs no bound",
    expected=holds_if("the sum stops while α is saturated"),
)
def windup(effort: Effort) -> Finding:
    """While α is saturated, the sum keeps growing and pushes the entropy far below the target before it is undone."""
    target, found = 0.3, {}
    varied = {"kp": [4.0], "ki": [0.05], "tau": [0.8]}
    for name, preset in (("sum stops", "paper"), ("sum goes on", "released")):
        (entropy,) = side_by_side(
            effort, varied, env="noisy", controller="entropic", preset=preset, target=target, rollouts=150
        )
        found[name] = target - entropy.min(-1)
    stated, condition = (below(found[name], 0.1) for name in ("sum goes on", "sum stops"))
    return Finding(
        "falls below the target by " + ", ".join(f"{told(values)} when the {name}" for name, values in found.items()),
        numbers_of({f"undershoot, {name}": values for name, values in found.items()}),
        *settle(stated, "the sum stops while α is saturated", condition),
    )


def stability_mismatches(loops: int) -> int:
    """Count random loops e⁺ = e + d − g·(Kp·e + Ki·S⁺) whose spectral radius contradicts the condition."""
    index = torch.arange(loops)
    s, c, g = (uniform(salt(name), index) for name in ("g·Kp", "g·Ki", "g"))
    s, c, g = 3 * s - 0.5, 5 * c - 0.5, 3 * g + 0.01
    radius = torch.linalg.eigvals(pi_control.transition(g, s / g, c / g)).abs().amax(-1)
    return int(((radius < 1) != pi_control.stable(g, s / g, c / g)).sum())


@claim(
    "pi-stability-linear",
    paper=PAPER,
    source="ours, on theorem 4.3",
    assumption="e⁺ = e + d − g(Kp·e + Ki·S⁺), S⁺ = S + e",
    predicted="stable if and only if 0 < gKp < 2, gKi > 0, 2gKp + gKi < 4",
    expected=HOLDS,
)
def linear_stability(effort: Effort) -> Finding:
    """PI control has a largest gain: beyond it the loop overshoots by more than it corrects."""
    loops = 50 * effort.instances
    wrong = stability_mismatches(loops)
    return Finding(
        f"{wrong} of {loops:,} random loops have a spectral radius that contradicts the condition",
        {"mismatches": float(wrong), "loops": float(loops)},
        judge(wrong == 0),
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
    source="ours, on theorem 4.3",
    assumption="exact environment near the target, α not bounded",
    predicted="the linear limits of Kp and Ki, with g measured at the target, within 10%",
    expected=HOLDS,
)
def nonlinear_stability(effort: Effort) -> Finding:
    """The largest stable gains follow from one number, the decrease of entropy per unit of α."""
    ratios = {f"{name}, η = {lr:g}": ratio for lr in (0.5, 2.0) for name, ratio in found_limits(lr).items()}
    gains = {f"g, η = {lr:g}": plant_gain(lr) for lr in (0.5, 2.0)}
    worst = max(abs(ratio - 1) for ratio in ratios.values())
    return Finding(
        f"largest stable gain / limit, in steps of .01: {min(ratios.values()):.2f} to {max(ratios.values()):.2f} "
        f"({', '.join(f'{name}: {g:.4f}' for name, g in gains.items())})",
        ratios | gains,
        judge(worst <= 0.1),
    )
