"""Remainder of STEER's theorem 1: the bound of its appendix F, equations 9 and 16."""

from collections.abc import Callable

import torch
from torch import Tensor

from entrostat import policy_stats

from .assumption_1 import STEER_1
from .ensembles import entropy_change, random_logits
from .live_case import Live, equals
from .mutations import Mutation, Swap, negated
from .registry import HOLDS, Effort, Finding, claim, judge

PAPER = "STEER"
ARMS = (2, 16, 64, 1000, 50_000)
SIZES = (0.01, 0.1, 0.3, 1.0, 3.0)
"""Sizes η·|A|·r of the update, L = 1."""
CONSTANT = 0.5
"""C of the bound, for every K up to 50,000."""
QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
"""Places of the sampled actions among the sorted probabilities."""

Step = Callable[[Tensor, Tensor, float], Tensor]
"""Step of the logits (n, K) for a sampled action (n,) and a signed size."""


def own_step(logits: Tensor, action: Tensor, size: float) -> Tensor:
    """Return the step of equation 14: the sampled action's logit moves by size·(1 − p), the others stay, (n, K)."""
    p = torch.softmax(logits, -1).gather(-1, action.unsqueeze(-1))
    return torch.zeros_like(logits).scatter(-1, action.unsqueeze(-1), size * (1 - p))


def whole_step(logits: Tensor, action: Tensor, size: float) -> Tensor:
    """Return the step of the whole gradient of the softmax, size·(e_a − p), (n, K)."""
    return -size * torch.softmax(logits, -1).scatter_add(-1, action.unsqueeze(-1), -torch.ones_like(logits[:, :1]))


def omega(logits: Tensor, action: Tensor, size: float) -> Tensor:
    """Return Ω of one sampled action, equation 8 with its two factors π, (n,)."""
    stats = policy_stats(logits)
    logp = stats.logp.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    p = logp.exp()
    return -size * p * (1 - p) * (logp + stats.entropy)


def largest(effort: Effort, arms: int, step: Step) -> float:
    """Return the largest |ΔH − Ω| / (η·|A|·r)² over policies, sampled actions, sizes and signs."""
    count, worst = max(min(effort.instances, 50_000 // arms), 2), 0.0
    mass = torch.linspace(0.02, 0.98, 25, dtype=torch.float64).unsqueeze(-1)
    flat = torch.cat([mass.log(), ((1 - mass) / (arms - 1)).log().expand(-1, arms - 1)], -1)
    drawn = [random_logits(count, arms, std, f"omega remainder {std}") for std in (1.0, 3.0, 10.0)]
    for logits in (flat, *drawn):
        order = logits.argsort(-1)
        for place in QUANTILES:
            action = (
                order[:, round(place * (arms - 1))] if logits is not flat else torch.zeros(len(flat), dtype=torch.int64)
            )
            for size in (sign * size for size in SIZES for sign in (1, -1)):
                error = entropy_change(logits, step(logits, action, size)) - omega(logits, action, size)
                worst = max(worst, float(error.abs().max()) / size**2)
            if logits is flat:
                break
    return worst


@claim(
    "steer-remainder",
    paper=PAPER,
    source="appendix F, theorem 1, equations 9 and 16",
    words="what Ω leaves out of the change of a state's entropy is at most C·η²·[A_max·r_max/L]², with a constant C "
    "that depends on the parameterization",
    statement=r"|\Delta H - \Omega| \le C\, \eta^2 \Bigl[\tfrac{A_{\max}\, r_{\max}}{L}\Bigr]^2",
    assumption="assumption 1, as the proof uses it: one sampled action, whose own logit alone moves",
    theorem=STEER_1,
    threshold=f"C = {CONSTANT:g} for every K up to 50,000 and updates η·A·r/L up to 3: a constant that is easy to use",
    null="the whole gradient of the softmax, for which no constant may do",
    expected=HOLDS,
    mutations=(
        Mutation("Ω had the other sign", Swap(__name__, "omega", negated)),
        Mutation("Ω were half as large", Swap(__name__, "omega", lambda f: lambda *at: f(*at) / 2)),
        Mutation("the token moved every logit", Swap(__name__, "own_step", lambda f: whole_step)),
    ),
    live=Live(
        "omega-remainder",
        turned={"moves": "every logit"},
        conditions=(equals("moves", "its own logit"),),
    ),
)
def remainder(effort: Effort) -> Finding:
    """There is such a constant, and it is small: it grows with ln K, as that of lemma 1 does, from .05 for two actions
    to .37 for 50,000. It is a bound for the step of assumption 1. A step of the whole gradient also moves the other
    logits, and what Ω leaves out is then of first order: the smaller the step, the further above the bound."""
    found = {arms: largest(effort, arms, own_step) for arms in ARMS}
    whole = {arms: largest(effort, arms, whole_step) for arms in ARMS[:-1]}
    return Finding(
        "largest C: " + ", ".join(f"{c:.2f} for K = {arms:,}" for arms, c in found.items()),
        {f"C, K = {arms}": c for arms, c in found.items()}
        | {f"C, whole gradient, K = {arms}": c for arms, c in whole.items()},
        judge(max(found.values()) <= CONSTANT < min(whole.values())),
        null=f"C {min(whole.values()):.0f} to {max(whole.values()):.0f}",
    )
