"""OPEFO: flows of entropy that cancel to first order only if they are exact."""

from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change, policy_stats
from entrostat.about.colours import linestyle
from entrostat.controllers.opefo import Opefo

from ..figures import series_styles
from ..trajectory import Array
from .checks import Check, below, between, numbers_of, settle, told
from .ensembles import STEPS, order, random_logits, random_vector
from .live_case import TINY_STEP, Live, equals, within
from .memory import remember
from .mutations import OFF, Mutation, Swap, always
from .pictures import picture
from .registry import FAILS, Effort, Finding, claim, holds_if
from .runs import entropies
from .theorems import Theorem
from .tokens import ARMS, OPEFO_1, every_token, exact_flow

PAPER = "OPEFO"
CONDITION = "ΔH is the exact flow"
KEPT = 0.05
"""Largest change of the entropy over a run that counts as none, nats."""
RULES: dict[str, dict[str, Any]] = {
    "GRPO": {"controller": "grpo"},
    "OPEFO": {"controller": "opefo"},
    "OPEFO, exact flow": {"controller": "opefo", "controller_args": {"estimator": "exact"}},
}


def own_logit_flow(logp: Tensor, entropy: Tensor, s2: Tensor, s2l: Tensor, weight: Tensor) -> Tensor:
    """Return the part of the exact flow that the token's own logit causes, (..., n)."""
    return entropy_change.own_logit(logp, entropy, weight)


FAULTS = (
    Mutation("the exact flow left out the other logits", Swap(entropy_change, "exact", always(own_logit_flow))),
    Mutation("the weights were off", Swap(Opefo, "transform", OFF)),
)
"""Mutations of what the condition asks for."""


ZERO_NET_FLOW = Theorem(
    name="OPEFO, zero net flow",
    test="test_opefo_zero_net_flow.py",
    derivation=(
        "(1 + λ)P = (1 − λ)M is linear in λ: λ* = (M − P)/(M + P), within ±1 if both are positive.",
        "The weights multiply each token's step, and first-order changes add.",
        "So exact flows cancel, ΔH = O(η²); the flows of equation 6 cancel in the formula alone.",
    ),
)


@claim(
    "opefo-formula",
    paper=PAPER,
    source="section 4, equation 6, and section 5.1",
    words="the change of entropy by the update of one token is estimated as −η·A·(1−p)²·(log p + H)",
    statement=r"\Delta H = -\eta\, A\,(1 - p)^2\,(\log p + H)",
    assumption="one sampled token, full softmax gradient",
    theorem=OPEFO_1,
    threshold="relative MSE < 1e-4 at η = 1e-3, as a complete first order, which errs by about η, has",
    null="the exact flow, which the measurement must find correct (no change: 1)",
    expected=FAILS,
    mutations=(Mutation("the formula were the exact flow", Swap(entropy_change, "opefo", always(exact_flow))),),
    live=Live("token-flow", values={"estimator": "OPEFO"}, turned={"estimator": "exact"}, conditions=(TINY_STEP,)),
)
def formula(effort: Effort) -> Finding:
    """For the token's own logit, the formula lacks a factor p and has one (1−p) too many; it omits the other logits."""
    logits = random_logits(effort.instances, ARMS, 2.0, "opefo formula")
    advantage = 2 * random_vector(effort.instances, ARMS, "opefo advantage")
    flow, truth = every_token(logits, advantage)
    stats = policy_stats(logits)
    p, entropy = stats.logp.exp(), stats.entropy.unsqueeze(-1)
    opefo, own = (f(stats.logp, entropy, advantage) for f in (entropy_change.opefo, entropy_change.own_logit))

    def relative(estimate: torch.Tensor) -> float:
        """Return the squared error relative to predicting no change, with tokens weighted by their probability."""
        return float((p * (estimate - truth) ** 2).sum() / (p * truth**2).sum())

    identity = float((opefo * p - own * (1 - p)).abs().max())
    numbers = {"relative MSE": relative(opefo), "relative MSE, own logit": relative(own), "identity error": identity}
    return Finding(
        f"relative MSE {relative(opefo):.2g}, of the own-logit part {relative(own):.2g}; OPEFO's ΔH·p/(1−p) equals the "
        f"own-logit part to {identity:.0e}",
        numbers,
        *settle(Check(relative(opefo) < 1e-4)),
        null=f"relative MSE {relative(flow):.0e}",
    )


@remember
def one_step(effort: Effort) -> dict[str, Array]:
    """Return |ΔH| of the first on-policy update of `on`, at each step size of STEPS, (len(STEPS), runs)."""
    found = {}
    for name, rule in RULES.items():
        runs = [entropies(effort, env="on", lr=float(lr), rollouts=1, **rule) for lr in STEPS]
        found[name] = abs(torch.tensor([(h[:, 1] - h[:, 0]).tolist() for h in runs], dtype=torch.float64)).numpy()
    return found


@claim(
    "opefo-one-step",
    paper=PAPER,
    source="section 5.3, equations 8 and 9",
    words="with the weight λ*, the flows that raise and that lower the entropy sum to about 0",
    statement=r"\textstyle\sum_i (1 \pm \lambda^*)\, \Delta H_i = 0 \ \Rightarrow\ |\Delta H| = O(\eta^2)",
    assumption="one on-policy update of mean step η",
    theorem=ZERO_NET_FLOW,
    threshold="|ΔH| is of order η², as nothing of the first order is left: slope within .1 of 2, and outside for the "
    "null",
    null="GRPO, λ = 0",
    expected=holds_if(CONDITION),
    mutations=FAULTS,
    live=Live(
        "opefo-step",
        turned={"estimator": "paper"},
        conditions=(equals("estimator", "exact", stated=False), equals("coupling", 0)),
    ),
)
def one_step_order(effort: Effort) -> Finding:
    """Weights that balance the flows stop the entropy at first order, if the flows are right."""
    slopes = {name: order(torch.as_tensor(change)).numpy() for name, change in one_step(effort).items()}
    paper, exact = (between(slopes[name], 1.9, 2.1) for name in ("OPEFO", "OPEFO, exact flow"))
    apart = below(slopes["GRPO"], 1.9)
    measured = ", ".join(f"{name} {told(values)}" for name, values in slopes.items() if name != "GRPO")
    return Finding(
        f"slope of log|ΔH|: {measured}",
        numbers_of(slopes),
        *settle(paper & apart, CONDITION, exact & apart),
        null=f"slope {told(slopes['GRPO'])}",
    )


@picture("opefo-one-step", caption="Entropy change of one on-policy update against its step size.")
def draw_orders(figure: Figure, effort: Effort) -> None:
    axes = figure.subplots()
    found = one_step(effort)
    for (name, change), style in zip(found.items(), series_styles(list(found)), strict=True):
        dash = linestyle(style.dash)
        axes.loglog(STEPS.numpy(), change.mean(-1), marker="o", color=style.colour, linestyle=dash, label=name)
    axes.set(xlabel="η", ylabel="|ΔH| (nats)")
    axes.legend()


@remember
def kept(effort: Effort) -> dict[str, Array]:
    """Return the entropy in `on` with small steps, (runs, rollouts + 1)."""
    return {name: entropies(effort, env="on", lr=0.1, rollouts=300, **rule) for name, rule in RULES.items()}


@claim(
    "opefo-run",
    paper=PAPER,
    source="sections 5.1 and 5.3",
    words="zero net flow in every batch stabilises the entropy without outside intervention",
    statement=r"\textstyle\sum_i (1 \pm \lambda^*)\, \Delta H_i = 0 \ \Rightarrow\ H_t = H_0",
    assumption="strictly on-policy (on), lr .1, 300 rollouts",
    theorem=ZERO_NET_FLOW,
    setting="language models with one update a rollout, AdamW, learning rate 2.83e-6",
    threshold=f"a change of at most {KEPT} nats over the run, a thirtieth of the initial entropy; the null's is larger",
    null="GRPO, λ = 0",
    expected=holds_if(CONDITION),
    mutations=FAULTS,
    live=Live(
        "opefo-run",
        turned={"estimator": "paper"},
        conditions=(equals("estimator", "exact", stated=False), equals("coupling", 0), within("lr", high=0.2)),
    ),
)
def whole_run(effort: Effort) -> Finding:
    """With small steps the first order dominates: balanced exact flows keep the entropy, the paper's let it drift."""
    change = {name: h[:, -1] - h[:, 0] for name, h in kept(effort).items()}
    paper, exact = (between(change[name], -KEPT, KEPT) for name in ("OPEFO", "OPEFO, exact flow"))
    start, apart = kept(effort)["GRPO"][:, 0].mean(), below(change["GRPO"], -KEPT)
    measured = ", ".join(f"{name} {told(values)}" for name, values in change.items() if name != "GRPO")
    return Finding(
        f"ΔH from {start:.2f}: {measured}",
        numbers_of(change),
        *settle(paper & apart, CONDITION, exact & apart),
        null=f"ΔH {told(change['GRPO'])}",
    )
