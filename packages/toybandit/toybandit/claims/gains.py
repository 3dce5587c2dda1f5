"""Gains that EntroPIC's own proof allows (appendix A.2), beside all gains that are stable."""

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat.numbers import pi_control
from entrostat.numbers.draws import salt, uniform

from .entropic import PAPER, TARGET, TAU, THEOREM_4_2
from .feedback import exact_loops, plant_gain
from .live_case import UNBOUNDED, Live, within
from .mutations import Mutation, Swap
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim, judge

LR = 0.5
"""Step size of the loops that are run in `exact`."""


def allowed(s: Tensor, c: Tensor) -> Tensor:
    """Return True where the Lyapunov function of appendix A.2 falls: (1 − s)² < 1 − c and 0 < c < 1; bool, any shape.

    s = g·Kp, c = g·Ki. The loop is e⁺ = (1−s)e − cS, S⁺ = S + e⁺. Among V = e² + κS² only κ = c/(1−c), which the
    proof requires to be positive, has ΔV without a product e·S: ΔV = ((1−s)²/(1−c) − 1)e² − c²/(1−c)·S².
    """
    return ((1 - s) ** 2 < 1 - c) & (c > 0) & (c < 1)


def random_gains(count: int) -> tuple[Tensor, Tensor]:
    """Return s = g·Kp and c = g·Ki, uniform on a rectangle that contains the stable region, (count,) each."""
    index = torch.arange(count)
    return 2.5 * uniform(salt("s of A.2"), index) - 0.25, 5 * uniform(salt("c of A.2"), index) - 0.5


def spectral_radius(s: Tensor, c: Tensor) -> Tensor:
    """Return the modulus of the larger pole of each loop, (count,)."""
    return torch.linalg.eigvals(pi_control.transition(1.0, s, c)).abs().amax(-1)


POINTS = ((0.3, 0.45), (1.0, 0.95), (1.7, 0.45), (0.3, 1.0), (1.0, 1.8), (0.5, 2.7), (0.5, 3.3), (1.0, 2.2), (2.1, 0.1))
"""Pairs of (s, c) that are run: three that A.2 allows, three more that are stable, three that are not."""


def settled(points: tuple[tuple[float, float], ...]) -> list[bool]:
    """Return True for each loop that stays within .01 nats of its target in `exact`, with g measured there."""
    g = plant_gain(LR)
    kp, ki = zip(*((s / g, c / g) for s, c in points), strict=True)
    args = {"kp": list(kp), "ki": list(ki), "tau": TAU, "alpha_max": 1e9}
    entropy = exact_loops(args, LR, 1000)[:, -100:]
    found: list[bool] = (np.abs(entropy - TARGET).max(-1) < 1e-2).tolist()
    return found


# The inequalities of appendix A.3 are not in the text at hand, so they are not compared.
@claim(
    "entropic-gains",
    paper=PAPER,
    source="appendix A.2, conditions on Kp and Ki; the text's formulas are derived again from its Lyapunov function",
    assumption="e⁺ = e + d − g(Kp·e + Ki·S⁺), S⁺ = S + e; s = g·Kp, c = g·Ki",
    theorem=THEOREM_4_2,
    words="the error converges to 0 under two conditions on the gains, with which the Lyapunov function falls: "
    "(1 − s)² < 1 − c and 0 < c < 1",
    statement=(
        r"V = e^2 + \tfrac{gK_i}{1 - gK_i} S^2, \quad \Delta V < 0 \iff",
        r"(1 - gK_p)^2 < 1 - gK_i, \quad 0 < gK_i < 1",
    ),
    threshold="no unstable loop among those allowed, some among those of the null, and every loop that is run settles "
    "or not as its poles say",
    null="any gains of the rectangle",
    expected=HOLDS,
    mutations=(
        Mutation(
            "1 − c were 1 + c", Swap(__name__, "allowed", lambda f: lambda s, c: ((1 - s) ** 2 < 1 + c) & (c > 0))
        ),
        Mutation("any gains were allowed", Swap(__name__, "allowed", lambda f: lambda s, c: s == s)),
        Mutation("Kp had the other sign", Swap(pi_control, "transition", lambda f: lambda g, kp, ki: f(g, -kp, ki))),
        Mutation("Ki had the other sign", Swap(pi_control, "transition", lambda f: lambda g, kp, ki: f(g, kp, -ki))),
    ),
    live=Live(
        "linear-loop",
        turned={"alpha_max": 0.02},
        conditions=(within("s", low=0.5, high=1.5), within("c", high=0.7), UNBOUNDED),
    ),
)
def sufficient_gains(effort: Effort) -> Finding:
    """All gains that the proof allows are stable, and they are a third of those that are: areas 4/3 and 4 in the plane
    of s and c. Ki may be up to four times as large as the proof allows. The two conditions of appendix A.3 are for the
    same loop with a constant drift, which does not change its poles: the exact region serves both."""
    s, c = random_gains(500 * effort.instances)
    inside, radius = allowed(s, c), spectral_radius(s, c)
    stable = radius < 1
    wrong, share = int((inside & ~stable).sum()), float(inside.sum() / stable.sum())
    largest = {"allowed": float(c[inside].max()), "stable": float(c[stable].max())}
    run = settled(POINTS)
    expected = [bool(pi_control.stable(1.0, *point)) for point in POINTS]
    return Finding(
        f"{wrong} of {int(inside.sum()):,} allowed loops are unstable; the condition allows {share:.1%} of the stable "
        f"ones, with g·Ki up to {largest['allowed']:.2f} (stable: {largest['stable']:.2f}); "
        f"{sum(x == y for x, y in zip(run, expected, strict=True))} of {len(run)} loops run in `exact` agree with the "
        "exact region",
        {"allowed but unstable": float(wrong), "allowed share of the stable": share}
        | {f"largest g·Ki, {name}": value for name, value in largest.items()},
        judge(wrong == 0 and run == expected and bool((~stable).any())),
        null=f"{float((~stable).double().mean()):.0%} unstable",
    )


@picture(
    "entropic-gains", caption="Gains that appendix A.2 allows and all stable gains; crosses: unstable runs in EXACT."
)
def draw_gains(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    s = np.linspace(0, 2, 201)
    axes.fill_between(s, 0, 4 - 2 * s, alpha=0.2, label="stable: 2s + c < 4")
    axes.fill_between(s, 0, 2 * s - s**2, alpha=0.5, label="allowed by A.2: (1 − s)² < 1 − c")
    for (x, y), fine in zip(POINTS, settled(POINTS), strict=True):
        axes.plot(x, y, "k." if fine else "kx")
    axes.set(xlabel="s = g·Kp", ylabel="c = g·Ki", xlim=(0, 2.3), ylim=(0, 4))
    axes.legend()
