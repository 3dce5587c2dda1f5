"""Control by likely tokens alone: EntroPIC, corollary 4.4."""

import numpy as np

from entrostat.controllers.entropic import Entropic

from ..trajectory import Array
from .checks import Values, below, between, every, numbers_of, settle, told
from .feedback import FAULTS, GAINS, GOAL, SETTLED, SLOW, controlled, errors, unlikely_alone
from .live_case import ON_POLICY, Live, equals, within
from .mutations import Mutation, Swap, always
from .registry import Effort, Finding, claim, holds_if
from .runs import side_by_side

PAPER = "EntroPIC"
HIGH = 0.8
"""τ: tokens with a larger probability are weighted."""
WIDE = 0.05
"""Distance from the target within which the mean entropy counts as there, nats."""
INTEGRAL = "there is an integral part"


def settling(entropy: Array) -> int:
    """Return the rollout from which on the mean entropy of the runs stays within WIDE of the target."""
    outside = np.flatnonzero(np.abs(entropy.mean(0) - GOAL) > WIDE)
    return int(outside[-1]) + 1 if len(outside) else 0


def by_unlikely(effort: Effort) -> dict[str, Values]:
    """Return H − target late in the runs of PI control by tokens with p ≤ .5 alone, off-policy and on-policy."""
    kp, ki = GAINS["PI"]
    varied, found = {"kp": [kp], "ki": [ki], "tau": [0.0]}, {}
    with Swap(Entropic, "transform", always(unlikely_alone))():
        for name, env in ENVS.items():
            (entropy,) = side_by_side(
                effort, varied, env=env, controller="entropic", target=GOAL, **(SLOW if env == "on" else {})
            )
            found[name] = entropy[:, -(entropy.shape[-1] // 5) :].mean(-1) - GOAL
    return found


ENVS = {"off-policy": "noisy", "on-policy": "on"}
"""Environments by the reuse of samples."""


@claim(
    "cor4.4-high-probability",
    paper=PAPER,
    source="section 4.3, corollary 4.4 and its proof in appendix A.4",
    words="with weights on likely tokens alone the theorems carry over: on-policy P and PI control bring the entropy "
    "to the target, off-policy P control leaves an error and PI control none; the convergence is typically slower",
    statement=(
        r"\alpha\, \mathbf{1}[\pi > \tau]: \quad M = 1 \ \Rightarrow\ H \to H^*,",
        r"M > 1,\ K_i > 0 \ \Rightarrow\ H \to H^*",
    ),
    assumption=f"τ = {HIGH:g}, target .6; strictly on-policy (on), and samples reused in 8 passes under a ratio clip "
    "(noisy)",
    setting="a language model with τ = .95 and a target of .1; the proof has no clip",
    threshold=f"over the last fifth of the runs PI within {SETTLED:g} nats in both, P off-policy (Kp = 1) at least "
    f"{SETTLED:g} below the target, P on-policy (Kp = 1) within {SETTLED:g}; the null is further below it",
    null="no control",
    expected=holds_if(INTEGRAL),
    mutations=(*FAULTS, Mutation("PI were P with Kp = 1", Swap(GAINS, "PI", always((1.0, 0.0))))),
    live=Live(
        "feedback",
        values={"passes": 1, "lr": 2.0, "tau": 0.7},
        turned={"ki": 0.0},
        conditions=(ON_POLICY, equals("tau", 0.7), within("ki", low=0.01, stated=False)),
    ),
)
def high_probability(effort: Effort) -> Finding:
    """Likely tokens are enough for PI control, on- and off-policy, in about four times as many rollouts off-policy.
    On-policy they are more than that: weights on all tokens cannot turn the expected step (cor4.1-collinear), and hold
    no target. Nor are they special: unlikely tokens hold it too, with the other sign. P control rests where it cancels
    the drift, on-policy too, as without the threshold."""
    found = {name: errors(effort, env, HIGH) for name, env in ENVS.items()}
    off, on = found.values()
    other = by_unlikely(effort)
    all_tokens = {name: errors(effort, env, 0.0)["PI"] for name, env in ENVS.items()}
    apart = every(below(each["no control"], -SETTLED) for each in found.values())
    pi = between(off["PI"], -SETTLED, SETTLED) & between(on["PI"], -SETTLED, SETTLED)
    pi &= below(off["P, Kp = 1"], -SETTLED) & apart
    times = [settling(controlled(effort, "noisy", tau)["PI"]) for tau in (0.0, HIGH)]
    lines = [
        f"{name}: " + ", ".join(f"{gains} {told(each[gains])}" for gains in ("P, Kp = 1", "PI"))
        for name, each in found.items()
    ]
    return Finding(
        f"H − target, {'; '.join(lines)}; PI on all tokens: "
        + ", ".join(f"{name} {told(x)}" for name, x in all_tokens.items())
        + "; by unlikely tokens alone, with the other sign: "
        + ", ".join(f"{name} {told(x)}" for name, x in other.items())
        + f"; off-policy PI is within {WIDE:g} nats after {times[1]} rollouts, {times[0]} on all tokens",
        numbers_of(
            {f"{name}, {gains}": x for name, each in found.items() for gains, x in each.items()}
            | {f"{name}, PI on all tokens": x for name, x in all_tokens.items()}
            | {f"{name}, PI on unlikely tokens": x for name, x in other.items()}
        ),
        *settle(pi & between(on["P, Kp = 1"], -SETTLED, SETTLED), INTEGRAL, pi),
        null="H − target " + ", ".join(f"{name} {told(each['no control'])}" for name, each in found.items()),
    )
