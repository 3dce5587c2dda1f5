"""Clip-Cov and KL-Cov: Entropy Mechanism, section 4."""

from collections.abc import Callable, Mapping
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from torch import Tensor

from entrostat import CompositionWarning
from entrostat.controller import Context
from entrostat.controllers.covariance import ClipCov, KLCov, share_of_tokens, token_covariance
from entrostat.plan import Plan

from .checks import Check, Values, numbers_of, rising, settle, told
from .live_case import NOISY, ON_POLICY, REUSED, Live, within
from .mutations import OFF, Mutation, Swap, always, negated
from .registry import HOLDS, Effort, Finding, claim
from .runs import entropies, side_by_side
from .theorems import Theorem

PAPER = "Entropy Mechanism"
DROPPED = (0.002, 0.01, 0.03, 0.1)
"""Values of k of Clip-Cov: share of the tokens that are dropped."""
PENALTIES = (0.01, 0.3, 1.0, 10.0)
"""Values of β of KL-Cov."""
PENALISED = 0.02
"""Value of k of KL-Cov: the paper's .002 would penalise one of 768 tokens."""


COVARIANCE = "entrostat.controllers.covariance", "token_covariance"
AT_RANDOM = Swap(*COVARIANCE, lambda f: lambda context: torch.full_like(f(context), 2.0))
"""Equal covariances, within the bounds of Clip-Cov: ties are drawn, so tokens are chosen at random."""
WRONG_SIGN = Swap(*COVARIANCE, negated)


def final_entropies(effort: Effort, controller: str, varied: dict[str, tuple[float, ...]]) -> dict[str, Values]:
    """Return the final entropy in `noisy` for each value of the first of the hyperparameters, (runs,) each, nats."""
    name, values = next(iter(varied.items()))
    entropy = side_by_side(effort, varied, env="noisy", controller=controller)[:, :, -1]
    return {f"{name} = {value:g}": h for value, h in zip(values, entropy, strict=True)}


def told_finals(final: Mapping[str, Values]) -> str:
    return ", ".join(f"{setting}: {told(h)}" for setting, h in final.items())


def against_chance(effort: Effort, controller: str, varied: dict[str, tuple[float, ...]]) -> Finding:
    """Judge that the final entropy rises with the first hyperparameter, and above that of tokens chosen at random."""
    final = final_entropies(effort, controller, varied)
    with AT_RANDOM():
        name, chance = list(final_entropies(effort, controller, varied).items())[-1]
    return Finding(
        f"final H: {told_finals(final)}",
        numbers_of({**final, f"{name}, at random": chance}),
        *settle(rising(*final.values()) & rising(chance, final[name])),
        null=f"final H, {name}: {told(chance)}",
    )


def ones(gap: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a function with the value 1 instead of log π − log π_old."""
    return lambda *at: torch.ones_like(gap(*at))


def dropping(self: KLCov, plan: Plan, context: Context) -> Plan:
    """Return the plan without the tokens that KL-Cov penalises."""
    covariance = token_covariance(context)
    return plan.drop(context.reduce.top_k(covariance, share_of_tokens(self.k, context.size)))


THRESHOLD = (
    "the final H rises with each value, in paired runs, and at the last value is above the null's: the paper shows "
    "curves in order and gives no numbers"
)


EQUATIONS_8_TO_12 = Theorem(
    name="Entropy Mechanism, equations 8 to 12",
    test="test_entropy_mechanism_equations_8_to_12.py",
    derivation=(
        "E_p[(lp − E lp)(A − E A)] is the covariance of theorem 2, by definition.",
        "A mini-batch of many states adds the covariance of their means, 0 if A is centred in each.",
        "∇_z D_KL(π_old ‖ π) = π − π_old, which is 0 if the two are equal.",
    ),
)


@claim(
    "clip-cov",
    paper=PAPER,
    source="section 4, equations 8 to 10, figure 6",
    words="a few tokens of extreme covariance drive the entropy down; detaching a random part of them controls it, and "
    "the more are clipped, the higher it stays",
    statement=r"k_1 < k_2 \ \Rightarrow\ H_{\mathrm{end}}(k_1) < H_{\mathrm{end}}(k_2)",
    assumption="noisy, samples reused in 8 passes, ω of 1 and 5",
    theorem=EQUATIONS_8_TO_12,
    setting="a 7B model, k = .0002 of its tokens; ω more than 500 times the mean covariance; 8 updates on a rollout",
    threshold=THRESHOLD,
    null="as many tokens dropped at random",
    expected=HOLDS,
    mutations=(
        Mutation("the covariance had the other sign", WRONG_SIGN),
        Mutation("tokens were chosen at random", AT_RANDOM),
        Mutation("nothing were dropped", Swap(ClipCov, "transform", OFF)),
    ),
    live=Live(
        "covariance-rules",
        turned={"env": "det"},
        conditions=(NOISY, REUSED, within("largest", high=0.1)),
    ),
)
def clip_cov(effort: Effort) -> Finding:
    """A few tokens carry most of the covariance, and so most of the fall of the entropy: k sets the final entropy."""
    return against_chance(effort, "clip_cov", {"k": DROPPED})


@claim(
    "kl-cov",
    paper=PAPER,
    source="section 4, equations 11 and 12, figure 6",
    words="a penalty on the tokens of highest covariance controls the entropy; a larger coefficient keeps it higher",
    statement=r"\beta_1 < \beta_2 \ \Rightarrow\ H_{\mathrm{end}}(\beta_1) < H_{\mathrm{end}}(\beta_2)",
    assumption="noisy, samples reused in 8 passes, k = .02",
    theorem=EQUATIONS_8_TO_12,
    setting="a 7B model, k = .002, β = 1; 8 updates on a rollout",
    threshold=THRESHOLD,
    null="as many tokens penalised at random",
    expected=HOLDS,
    mutations=(
        Mutation("the covariance had the other sign", WRONG_SIGN),
        Mutation("tokens were chosen at random", AT_RANDOM),
        Mutation("nothing were penalised", Swap(KLCov, "transform", OFF)),
    ),
    live=Live(
        "covariance-rules",
        values={"rule": "KL-Cov"},
        turned={"passes": 1},
        conditions=(NOISY, REUSED, within("largest", high=0.1)),
    ),
)
def kl_cov(effort: Effort) -> Finding:
    """Keeping the same few tokens near the policy that sampled them keeps entropy; β sets how much."""
    return against_chance(effort, "kl_cov", {"beta": PENALTIES, "k": (PENALISED,) * len(PENALTIES)})


@claim(
    "kl-cov-on-policy",
    paper=PAPER,
    source="on equation 12: |x| has no slope at 0 in automatic differentiation; ours",
    words="KL-Cov equals GRPO there, since |log π − log π_old| has no gradient if the two are equal",
    statement=r"\pi = \pi_{\mathrm{old}} \ \Rightarrow\ "
    r"\nabla\, |\log \pi - \log \pi_{\mathrm{old}}| = 0",
    assumption="strictly on-policy (on)",
    theorem=EQUATIONS_8_TO_12,
    threshold="entropies differ by less than 1e-12 nats, the rounding of sums",
    null="two passes over the samples",
    expected=HOLDS,
    mutations=(
        Mutation("the penalty lacked the bars, so that its slope were 1", Swap("entrostat.plan", "_gap", ones)),
        Mutation("it dropped the tokens, as Clip-Cov does", Swap(KLCov, "transform", always(dropping))),
    ),
    live=Live("kl-cov-is-grpo", turned={"passes": 2}, conditions=(ON_POLICY,)),
)
def kl_cov_on_policy(effort: Effort) -> Finding:
    """Its penalty needs a policy that has moved away from the sampling policy: without reuse it has no effect."""
    args = {"k": PENALISED, "beta": PENALTIES[-1]}
    with catch_warnings():
        simplefilter("ignore", CompositionWarning)  # the warning announces the effect measured here
        gaps = []
        for change in ({}, {"passes": 2}):
            kl = entropies(effort, env="on", controller="kl_cov", controller_args=args, **change)
            free = entropies(effort, env="on", controller="clip_free", **change)
            gaps.append(float(np.abs(kl - free).max()))
    once, twice = gaps
    return Finding(
        f"largest difference of the entropies of two runs: {once:.0e}",
        {"difference": once, "difference, two passes": twice},
        *settle(Check(once < 1e-12 < twice)),
        null=f"largest difference {twice:.2g}",
    )
