"""STEER's weights over a run: its figure 8."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from entrostat import entropy_change
from entrostat.controller import Context
from entrostat.controllers.steer import Steer
from entrostat.plan import Plan, importance_ratio

from ..instruments import at_hand
from ..trajectory import Array
from .checks import Values, above, numbers_of, rising, settle, told
from .live_case import NOISY, REUSED, Live
from .mutations import Mutation, Swap
from .registry import FAILS, Effort, Finding, claim
from .runs import entropies, side_by_side

PAPER = "STEER"
LAMBDAS = (0.7, 0.2)


@dataclass(kw_only=True)
class OwnLogit(Steer):
    """STEER with |w·p(1−p)(lp + H)| as Ω: the own-logit part of the flow, which has one more factor p."""

    def omega(self, plan: Plan, context: Context) -> Tensor:
        t = context.tokens
        weight = t.advantage * importance_ratio(t.get("logp"), t.get("old_logp"))
        weight = weight.masked_fill(plan.clipped(t.get("logp")), 0.0)
        return entropy_change.own_logit(t.get("logp"), t.get("entropy"), weight).abs()


FREE = {"eps_low": 0.99, "eps_high": 5.0}
"""Clip bounds of the paper's figure 8, with which almost nothing is clipped."""


def silencing(transform: Callable[..., Plan]) -> Callable[..., Plan]:
    """Return STEER with weight 0 on every token that lowers the entropy, however little, and 1 on the others."""

    def silent(self: Steer, plan: Plan, context: Context) -> Plan:
        t = context.tokens
        weight = t.advantage * importance_ratio(t.get("logp"), t.get("old_logp"))
        flow = entropy_change.steer(t.get("logp"), t.get("entropy"), weight)
        return transform(self, plan, context).reweight(torch.where(flow < 0, 0.0, 1.0))

    return silent


STEADY = 0.95
"""Least entropy at the end of a plateau, relative to that half-way."""


@claim(
    "steer-collapse",
    paper=PAPER,
    source="section 6, figure 8",
    words="with almost no clipping, where GRPO's entropy collapses, STEER's stabilizes after an initial decline and "
    "stays steady",
    statement=(
        r"w = \lambda_{\min}^{\,\Omega / \max \Omega} \ \Rightarrow",
        r"H_{\mathrm{end}} \ge 0.95\, H_{\mathrm{half}}, \quad H_{\mathrm{end}} > H_{\mathrm{end}}^{\mathrm{GRPO}}",
    ),
    assumption="noisy, exponential weights, clip .99/5, λ_min = .7",
    setting="language models, ε .99/5, λ_min = .7; also measured here with .2, at .2/.2, and from .37 nats",
    threshold=f"a plateau: the last tenth of the run has at least {STEADY:.0%} of the entropy half-way, and more than "
    "the null's: the figure shows one without a number",
    null="GRPO with the same bounds",
    expected=FAILS,
    mutations=(Mutation("tokens that lower the entropy had weight 0", Swap(Steer, "transform", silencing)),),
    live=Live(
        "steer-collapse",
        turned={"lambda_min": 0.05, "std": 9.0},
        conditions=(NOISY, REUSED),
    ),
)
def steer_collapse(effort: Effort) -> Finding:
    """The weights slow down the tokens that move the entropy most, in either direction, and so delay its fall. At the
    paper's λ_min the entropy keeps falling, and ends where GRPO's does. A plateau above GRPO's needs weights far below
    the paper's and a policy that starts as sure as its model: then little is left to fall. The delay depends on Ω: with
    one more factor p, the own-logit part, strong weights help less or not at all."""
    few = effort.times(0.5)
    runs = {
        (start, bounds, low): weighted(effort if (start, bounds) == JUDGED else few, low, BOUNDS[bounds], std)
        for start, std in STARTS.items()
        for bounds in BOUNDS
        for low in (1.0, *LAMBDAS)
        if start == "noisy" or bounds == FREELY
    }
    end, half = ({name: tenth(entropy, where) for name, entropy in runs.items()} for where in (1.0, 0.5))
    start = runs[*JUDGED, 1.0][:, 0]
    with at_hand(steer_own_logit=OwnLogit):
        own = side_by_side(few, {"lambda_min": LAMBDAS}, env="noisy", controller="steer_own_logit")
    key = (*JUDGED, LAMBDAS[0])
    check = above(end[key] - STEADY * half[key]) & rising(end[*JUDGED, 1.0], end[key])

    def listed(of: bool) -> str:
        return ", ".join(
            f"{'' if name[0] == 'noisy' else 'sure start, '}{name[1]}{'' if of else f', λ_min = {name[2]:g}'} "
            f"{told(values)} ({(values / half[name]).mean():.0%})"
            for name, values in end.items()
            if (name[2] == 1) == of
        )

    ours = {f"clip .2/.2, λ_min = {low}, own-logit Ω": own[i, :, -1] for i, low in enumerate(LAMBDAS)}
    return Finding(
        f"from {told(start)}, end (and relative to half-way): {listed(False)}; "
        + ", ".join(f"{name} {told(values)}" for name, values in ours.items()),
        numbers_of(
            {"initial H": start}
            | {f"final H, {a}, {b}, λ_min = {low:g}": values for (a, b, low), values in end.items()}
            | {f"half-way H, {a}, {b}, λ_min = {low:g}": values for (a, b, low), values in half.items()}
            | {f"final H, {name}": values for name, values in ours.items()}
        ),
        *settle(check),
        null=f"end {listed(True)}",
    )


FREELY = "clip .99/5"
JUDGED = ("noisy", FREELY)
"""Start and clip bounds that the verdict is about."""
STARTS = {"noisy": 2.0, "sure": 9.0}
"""Standard deviation of the initial logits by start; `sure` has about .37 nats."""


def tenth(entropy: Array, where: float) -> Values:
    """Return the mean over the tenth of each run that ends at this part of it, (runs,); one around it half-way."""
    n = entropy.shape[-1]
    stop = n if where == 1 else round(where * n + n / 20)
    found: Values = entropy[:, stop - round(n / 10) : stop].mean(-1)
    return found


BOUNDS: dict[str, dict[str, float]] = {FREELY: FREE, "clip .2/.2": {}}
"""Clip bounds of the runs, by name."""


def weighted(effort: Effort, low: float, bounds: Mapping[str, float], logit_std: float = 2.0) -> Array:
    """Return the entropy under STEER with λ_min = `low`, 1 for GRPO, under these clip bounds, (runs, rollouts + 1)."""
    config: dict[str, Any] = {"env": "noisy", "logit_std": logit_std}
    if low == 1:
        return entropies(effort, controller="grpo", controller_args=bounds, **config)
    return entropies(effort, controller="ppo+steer", controller_args={**bounds, "lambda_min": low}, **config)
