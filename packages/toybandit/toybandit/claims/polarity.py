"""Weights by the sign of each token's entropy flow: PAPO."""

from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change
from entrostat.controllers.papo import Papo

from ..trajectory import Array
from .checks import Values, between, every, numbers_of, rising, settle, told
from .feedback import GOAL, late, told_errors
from .holding import HELD, NEAR, STOCHASTIC, length
from .live_case import Live, equals, within
from .memory import remember
from .mutations import OFF, Mutation, Swap, always, faults, negated
from .pictures import panels, picture
from .registry import HOLDS, Effort, Finding, claim, holds_if
from .runs import entropies

PAPER = "PAPO"
ENVS = "noisy", "on", "det"
SIDES = {"contracting": 0.0, "expanding": 99.0}
"""Targets with which tokens of that polarity have the larger weight in the whole run."""


@remember
def reweighted(effort: Effort, env: str, target: float | None) -> Array:
    """Return the entropy under PAPO with this target, or under GRPO, (runs, rollouts + 1)."""
    rule: dict[str, Any] = {} if target is None else {"controller": "papo", "target": target}
    return entropies(effort.times(0.5), env=env, **rule, **length(env))


def by_sign(*at: Any) -> Tensor:
    """Return the advantage for the flow."""
    found: Tensor = at[-1]
    return found


@claim(
    "papo-polarity",
    paper=PAPER,
    source="abstract (arXiv 2605.11775); weights and signal are ours, the sections are not at hand",
    words="a token's polarity, the sign of its first-order entropy change, says whether its update expands or "
    "contracts the entropy, so that weights on the advantages of either kind control it",
    statement=(
        r"A \to (1 + \gamma \operatorname{sign} \Delta H_i)\, A",
        r"\Rightarrow\ H_{\mathrm{end}} > H_{\mathrm{end}}^{\mathrm{GRPO}}",
    ),
    assumption="noisy, strictly on-policy (on) and det; weights 1.5 on one kind, .5 on the other",
    setting="language models, mathematics and agents",
    threshold="final H with more weight on contracting tokens < GRPO's < with more on expanding ones, in each "
    "environment in paired runs: a sign is claimed, not a size",
    null="GRPO, all weights 1",
    expected=HOLDS,
    mutations=(
        Mutation("the flow had the other sign", Swap(entropy_change, "exact", negated)),
        Mutation("the polarity were the sign of A", Swap(entropy_change, "exact", always(by_sign))),
        Mutation("all weights were 1", Swap(Papo, "transform", OFF)),
    ),
    live=Live("polarity", turned={"gamma": 0.0}, conditions=(within("gamma", low=0.1),)),
)
def papo_polarity(effort: Effort) -> Finding:
    """The exact flow knows the direction of tokens, also where samples are reused and clipped. Weights of 1.5 and .5
    move the entropy far: strictly on-policy to above its initial value, or to a quarter of GRPO's."""
    final: dict[str, Values] = {}
    checks, lines, nulls = [], [], []
    for env in ENVS:
        low, high = (reweighted(effort, env, target)[:, -1] for target in SIDES.values())
        grpo = reweighted(effort, env, None)[:, -1]
        checks.append(rising(low, grpo, high))
        lines.append(f"{env}: contracting {told(low)}, expanding {told(high)}")
        nulls.append(f"{env} {told(grpo)}")
        final |= {f"contracting, {env}": low, f"expanding, {env}": high, f"GRPO, {env}": grpo}
    return Finding(
        "final H, more weight on one kind, " + "; ".join(lines),
        numbers_of(final),
        *settle(every(checks)),
        null="final H, " + ", ".join(nulls),
    )


@claim(
    "papo-target",
    paper=PAPER,
    source="abstract (arXiv 2605.11775); weights, signal and target are ours, the sections are not at hand",
    words="with the measured entropy as a signal, weights move between expanding and contracting tokens and so control "
    "the entropy",
    statement=(
        r"A \to (1 + \gamma\, u \operatorname{sign} \Delta H_i)\, A, \quad u \propto H^* - H",
        r"\Rightarrow\ H \to H^*",
    ),
    assumption="noisy, strictly on-policy (on) and det, target .6, default weights and band",
    setting="language models, mathematics and agents",
    threshold=NEAR,
    null="GRPO",
    expected=holds_if(STOCHASTIC),
    mutations=(
        *faults(Papo),
        Mutation("the flow had the other sign", Swap(entropy_change, "exact", negated)),
    ),
    live=Live(
        "holding",
        values={"controller": "PAPO", "rollouts": 80, "passes": 4},
        turned={"env": "det"},
        conditions=(equals("env", "noisy", "on", stated=False), within("target", high=1)),
    ),
)
def papo_target(effort: Effort) -> Finding:
    """Weights in proportion to the error are P control, and its gain is high enough here to rest within a quarter of
    the band from the target. Weights on advantages need advantages: once every sample of a state is right, nothing is
    left to weigh, as for Pos-Adv-Reweight."""
    errors = {env: late(reweighted(effort, env, GOAL)) - GOAL for env in ENVS}
    none = {env: late(reweighted(effort, env, None)) - GOAL for env in ENVS}
    checks = {env: between(error, -HELD, HELD) for env, error in errors.items()}
    return Finding(
        told_errors(errors),
        numbers_of(errors | {f"GRPO, {env}": error for env, error in none.items()}),
        *settle(every(checks.values()), STOCHASTIC, checks["noisy"] & checks["on"]),
        null=told_errors(none),
    )


@picture("papo-polarity", caption="Mean entropy with more weight on expanding or on contracting tokens, and GRPO's.")
def draw_polarity(figure: Figure, effort: Effort) -> None:
    sides = {**SIDES, "GRPO": None}
    panels(figure, {env: {name: reweighted(effort, env, side) for name, side in sides.items()} for env in ENVS})
