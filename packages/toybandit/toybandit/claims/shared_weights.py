"""Entropy change of states that share weights, by one update: its first order, and the flow of a table."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import policy_stats
from entrostat.entropy_change import lemma1

from .. import features, simulator
from ..config import Config
from ..features import Features, logits_of
from ..simulator import simulate
from .checks import Values, below, every, numbers_of, rising, settle, told
from .data_diversity import rows
from .live_case import TINY_STEP, Live, equals
from .memory import remember
from .mutations import Mutation, Swap, always, negated
from .pictures import picture
from .registry import HOLDS, Effort, Finding, claim

STATES = 64
DIMENSIONS = (64, 48, 32, 16, 8, 4, 2)
"""Numbers of features d, from a table's on."""
STEP = 0.01
"""Learning rate, a hundredth of that of `on`."""
EXPLAINED = 0.01
"""Largest share of the squared error of guessing zero that a whole first order may leave: the rest is curvature."""
LM_ITSELF, LM_ALL = 0.623, 0.558
"""Shares that the exact flow leaves in a language model at its best step size, if one token is updated alone: of the
change at its own place, and of all tokens' (docs/claims_lm.md, token-flow and the null of first-order-step)."""
WHOLE, FITTED, ALONE, FIRST = "flow", "flow, fitted step", "flow of one state on all, fitted step", "first order"


class Update(NamedTuple):
    """One update of R runs with N states and K arms."""

    logits: Tensor
    """Logits before it, (R, N, K)."""
    after: Tensor
    """Logits after it, (R, N, K)."""
    own: Tensor
    """Change of the logits if the same samples had trained a table, (R, N, K)."""
    overlap: Tensor
    """Inner products φφᵀ of the states' features, (N, N)."""


def update(runs: int, dimension: int, lr: float = STEP) -> Update:
    """Return the first update of runs with so many features."""
    config = Config(env="on", states=STATES, rollouts=1, lr=lr, features=dimension)
    shared = Features(config.environment(), torch.arange(runs), torch.float64)
    logits = logits_of(shared.weights, shared.of_row)
    own = torch.empty_like(logits)
    for seed, success in enumerate(shared.success(slice(None))):
        table = Config(env="on", states=STATES, rollouts=1, lr=lr, success=rows(success))
        own[seed] = torch.from_numpy(simulate(table, [seed], start=logits[[seed]].numpy()).logits[0]) - logits[seed]
    after = torch.from_numpy(simulate(config, range(runs)).logits)
    return Update(logits, after, own, shared.of_row @ shared.of_row.mT)


def of_all(step: Update) -> Tensor:
    """Return the change of the logits by the tokens of all states, (R, N, K): Δz_s = Σ_s' (φ_s·φ_s')·own_s'."""
    return step.overlap @ step.own


def on_all(step: Update) -> Tensor:
    """Return the change of all states' entropies together if one state's tokens are updated alone, (R, N)."""
    moved = step.logits.unsqueeze(2) + step.overlap.unsqueeze(-1) * step.own.unsqueeze(1)
    return (policy_stats(moved).entropy - policy_stats(step.logits).entropy.unsqueeze(2)).sum(1)


def left(estimate: Tensor, change: Tensor, fitted: bool = False) -> Values:
    """Return the squared error of an estimate as a share of that of guessing zero, (runs,); both are (runs, n).

    fitted: at the best step size of each run, at least 0.
    """
    if fitted:
        scale = (estimate * change).sum(-1, keepdim=True) / (estimate**2).sum(-1, keepdim=True)
        estimate = scale.clamp(min=0) * estimate
    found: Values = (((estimate - change) ** 2).sum(-1) / (change**2).sum(-1)).numpy()
    return found


@remember
def shares(runs: int, dimension: int) -> dict[str, Values]:
    """Return the share that each estimate leaves, (runs,) each."""
    step = update(runs, dimension)
    before = policy_stats(step.logits)
    change = policy_stats(step.after).entropy - before.entropy
    flow = lemma1(before.logp, step.own)
    return {
        WHOLE: left(flow, change),
        FITTED: left(flow, change, fitted=True),
        ALONE: left(flow, on_all(step), fitted=True),
        FIRST: left(lemma1(before.logp, of_all(step)), change),
    }


def elsewhere(in_weights: Callable[..., Any]) -> Callable[..., Any]:
    """Return `in_weights` with the features of the states before."""
    return lambda gradient, of_row, *at: in_weights(gradient, None if of_row is None else of_row.roll(1, 0), *at)


@claim(
    "shared-weights",
    paper="Ours",
    source="the chain rule for logits z_s = φ_s·θ, those of a language model's last layer; asked of a language model "
    "as first-order-step",
    words="if states share weights, an update changes the entropy of a state by the tokens of all states: what the "
    "flow of its own tokens leaves unexplained, nothing in a table, grows as the features get fewer, and the first "
    "order in the shared weights explains it with any number of them",
    statement=(
        r"\Delta H_s = \big\langle \nabla H_s,\ \textstyle\sum_{s'} (\phi_s \cdot \phi_{s'})\, \Delta z_{s'} "
        r"\big\rangle + O(\eta^2),",
        r"\nabla H = -p\,(\log p + H)",
    ),
    assumption=f"on with {STATES} states, η = {STEP:g} and d of {', '.join(map(str, DIMENSIONS))}; the first update",
    threshold=f"squared error as a share of that of guessing zero: of the flow below {EXPLAINED:g} in a table, d = "
    f"{STATES}, and larger with each smaller d in the same runs; of the first order below {EXPLAINED:g} with every d",
    null="the flow of a state's own tokens, as in a table",
    expected=HOLDS,
    mutations=(
        Mutation("states shared nothing", Swap(features, "directions", always(lambda n, d: np.eye(n)))),
        Mutation(
            "half of the features were missing", Swap(features, "directions", lambda f: lambda n, d: f(n, d // 2))
        ),
        Mutation("an update went to the features of other states", Swap(simulator, "in_weights", elsewhere)),
        Mutation("the gradient of H had the other sign", Swap(__name__, "lemma1", negated)),
    ),
    live=Live("shared-weights", turned={"tokens": "its own"}, conditions=(equals("tokens", "all states'"), TINY_STEP)),
)
def shared_weights(effort: Effort) -> Finding:
    """States that share weights move each other. What a state's own tokens explain depends on d; the first order of all
    tokens is complete, as in a language model. The model's numbers are of one token at a time and at the best step
    size, with which the flow leaves less again if features are very few, since states then move alike. A state that is
    updated alone changes its own entropy by the flow of a table with any d, since features are unit vectors; in the
    model that flow leaves most of the change."""
    found = {d: shares(effort.runs, d) for d in DIMENSIONS}
    flow, first = [found[d][WHOLE] for d in DIMENSIONS], [found[d][FIRST] for d in DIMENSIONS]

    def nearest(name: str, level: float) -> str:
        d = min(DIMENSIONS, key=lambda d: abs(float(found[d][name].mean()) - level))
        return f"{told(found[d][name])} at d = {d}"

    return Finding(
        f"the first order leaves at most {max(values.mean() for values in first):.0e}, the flow in a table "
        f"{flow[0].mean():.0e}; of what the flow leaves with shared weights, {nearest(WHOLE, LM_ITSELF)} is nearest to "
        f"the language model's {LM_ITSELF:g}; if one state is updated alone, {nearest(ALONE, LM_ALL)} of all states' "
        f"change is nearest to the model's {LM_ALL:g}",
        numbers_of({f"{name}, d = {d}": found[d][name] for name in found[STATES] for d in DIMENSIONS}),
        *settle(below(flow[0], EXPLAINED) & rising(*flow) & every(below(values, EXPLAINED) for values in first)),
        null="leaves " + ", ".join(f"{told(found[d][WHOLE])} at d = {d}" for d in DIMENSIONS[1:]),
    )


@picture(
    "shared-weights",
    caption="Share of the squared entropy changes by one update that an estimate leaves, by the number of features; "
    "dotted: what the exact flow leaves in a language model if one token is updated alone.",
)
def draw_shares(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    for name, style in {WHOLE: "C0o-", FITTED: "C0o--", ALONE: "C1o--", FIRST: "C2o-"}.items():
        axes.plot(DIMENSIONS, [shares(effort.runs, d)[name].mean() for d in DIMENSIONS], style, label=name)
    for level, on, color, above in ((LM_ITSELF, "itself", "0.4", 0.055), (LM_ALL, "all", "C1", -0.02)):
        axes.axhline(level, color=color, linestyle=":")
        text = f"language model, token on {on}: {level:g}"
        axes.text(STATES, level + above, text, ha="right", va="top", color=color, fontsize=8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(DIMENSIONS, map(str, DIMENSIONS))
    axes.set(xlabel="features d", ylabel="share left", ylim=(-0.03, 1.12))
    axes.legend(loc="upper right", fontsize=8)
