"""Tokens stopped by the divergence of their policies instead of their importance ratio: DPPO."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from entrostat.controller import Context
from entrostat.plan import Plan
from entrostat.surrogates.divergence import DPPO, DPPOKL

from ..instruments import at_hand, probe
from ..trajectory import Trajectory
from .checks import Values, every, numbers_of, rising, settle, told
from .clipping import EARLY, RATE
from .live_case import NOISY, REUSED, Live
from .memory import remember
from .mutations import Change, Mutation, Swap, always, scaled
from .registry import HOLDS, Effort, Finding, claim
from .runs import trajectory

PAPER = "DPPO"
UNLIKELY, LIKELY = 0.05, 0.75
"""Upper limit of π_old of unlikely tokens, and lower limit of likely ones."""
MASKS = {"DPPO-TV": "dppo", "DPPO-KL": "dppo_kl"}
"""Masks by divergence, at their published limits: a change of p of .15, and .05 nats."""
RULES: dict[str, dict[str, Any]] = {
    "GRPO": {"controller": "grpo"},
    "no mask": {"controller": "clip_free"},
    **{name: {"controller": controller} for name, controller in MASKS.items()},
}
"""Rules that are compared; no mask: the importance-weighted policy gradient."""
FASTER = 4 * RATE
"""Learning rate at which a policy without a mask collapses within EARLY rollouts."""


def by_ratio(self: DPPO, logp: Tensor, old_logp: Tensor) -> tuple[Tensor, Tensor]:
    """Return the masks of tokens whose ratio is above 1.2, and below .8."""
    ratio = (logp - old_logp).exp()
    return ratio > 1.2, ratio < 0.8


def none(self: DPPO, logp: Tensor, old_logp: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks without a token."""
    return torch.zeros_like(logp, dtype=torch.bool), torch.zeros_like(logp, dtype=torch.bool)


def of_both(change: Change) -> tuple[Swap, Swap]:
    """Return the change of the masks of both rules."""
    return Swap(DPPO, "beyond", change), Swap(DPPOKL, "beyond", change)


def counts(plan: Plan, context: Context) -> Mapping[str, Tensor]:
    """Return numbers of unlikely and of likely tokens, and of those that are stopped, (...,) each."""
    logp, old = context.tokens.get("logp"), context.tokens.get("old_logp").exp()
    stopped = plan.clipped(logp)
    info: dict[str, Tensor] = {}
    for name, group in {"unlikely": old <= UNLIKELY, "likely": old > LIKELY}.items():
        info |= {f"{name} tokens": group.sum(-1), f"{name} stopped": (group & stopped).sum(-1)}
    return info


StopProbe = probe(counts, "logp", "old_logp")
"""Controller that changes nothing and counts stopped tokens."""


@remember
def shares(effort: Effort, controller: str) -> dict[str, Values]:
    """Return the shares of unlikely and of likely tokens that are stopped early in runs in `noisy`, (runs,) each."""
    with at_hand(stop_probe=StopProbe):
        run = trajectory(effort, env="noisy", controller=f"{controller}+stop_probe", rollouts=EARLY)
    total = {name: values.sum(-1) for name, values in run.metrics.items()}
    return {name: total[f"{name} stopped"] / total[f"{name} tokens"] for name in ("unlikely", "likely")}


def told_shares(found: Mapping[str, Values]) -> str:
    return ", ".join(f"{name} {values.mean():.2%}" for name, values in found.items())


@claim(
    "dppo-mask",
    paper=PAPER,
    source="abstract (arXiv 2602.04879) and figure 1; the sections are not at hand",
    words="the ratio clip holds back unlikely tokens too much and likely ones too little; a mask by the divergence of "
    "the policies, total variation or KL, does neither",
    statement=(
        r"|p - p_{\mathrm{old}}| > \delta \ \text{ stops likely tokens},",
        r"|r - 1| > \varepsilon \ \text{ stops unlikely ones}",
    ),
    assumption=f"noisy, samples reused in 8 passes, first {EARLY} rollouts; published limits",
    setting="language models, whose likely tokens have p near 1 and whose unlikely ones have p below 1e-4",
    threshold=f"fewer of the unlikely tokens (π_old ≤ {UNLIKELY:g}) are stopped than under the null, and more of the "
    f"likely ones (π_old > {LIKELY:g}, where the two limits meet: .2·p = .15), in paired runs, by both divergences",
    null="GRPO, clip .2/.2",
    expected=HOLDS,
    mutations=(
        Mutation("the masks were by the ratio", *of_both(always(by_ratio))),
        Mutation("no token were stopped", *of_both(always(none))),
    ),
    live=Live(
        "mask",
        turned={"passes": 1},
        conditions=(REUSED, NOISY),
    ),
)
def dppo_mask(effort: Effort) -> Finding:
    """A ratio of 1.2 is a small change of an unlikely token and cannot be reached by a token with p above .83. The mask
    by divergence stops hardly any unlikely token, and a few likely ones."""
    clip, found = shares(effort, "grpo"), {name: shares(effort, rule) for name, rule in MASKS.items()}
    check = every(
        rising(each["unlikely"], clip["unlikely"]) & rising(clip["likely"], each["likely"]) for each in found.values()
    )
    return Finding(
        "stopped: " + "; ".join(f"{name}: {told_shares(each)}" for name, each in found.items()),
        numbers_of(
            {
                f"stopped, {kind}, {name}": x
                for name, each in (found | {"GRPO": clip}).items()
                for kind, x in each.items()
            }
        ),
        *settle(check),
        null=f"stopped: {told_shares(clip)}",
    )


@remember
def early(effort: Effort, name: str, lr: float) -> Trajectory:
    """Simulate the first rollouts in `noisy` under one of RULES."""
    return trajectory(effort, env="noisy", rollouts=EARLY, lr=lr, **RULES[name])


@claim(
    "dppo-learning",
    paper=PAPER,
    source="abstract (arXiv 2602.04879); the released code's figures 2 and 3",
    words="training learns faster than with the ratio clip, and stays stable where training without a trust region "
    "collapses",
    statement=r"\bar R(\text{DPPO}) > \bar R(\text{GRPO})",
    assumption=f"noisy, samples reused in 8 passes, first {EARLY} rollouts, at η = {RATE:g} and at η = {FASTER:g}",
    setting="Qwen3-30B-A3B, AIME; the instability there comes from engines that differ",
    threshold=f"at η = {RATE:g} a mean reward above GRPO's, at η = {FASTER:g} a last reward above that without a mask, "
    "in paired runs, with both divergences: the paper shows curves",
    null="GRPO, clip .2/.2, and the policy gradient with importance weights, without a mask",
    expected=HOLDS,
    mutations=(
        Mutation("the masks were by the ratio", *of_both(always(by_ratio))),
        Mutation("the limits were a hundredth", *of_both(scaled("delta", 0.01))),
    ),
    live=Live(
        "learning",
        turned={"passes": 1},
        conditions=(REUSED, NOISY),
    ),
)
def dppo_learning(effort: Effort) -> Finding:
    """Unlikely tokens that pay grow without a brake, so reward comes sooner; the price is entropy, of which less is
    left than under GRPO. At a rate four times as high the mask keeps the policy from becoming sure of wrong arms."""
    slow = {name: early(effort, name, RATE) for name in ("GRPO", *MASKS)}
    speed = {name: run.reward.mean(-1) for name, run in slow.items()}
    left = {name: run.entropy[:, -1] for name, run in slow.items()}
    end = {name: early(effort, name, FASTER).reward[:, -1] for name in ("no mask", *MASKS)}
    check = every(rising(speed["GRPO"], speed[name]) & rising(end["no mask"], end[name]) for name in MASKS)
    return Finding(
        "; ".join(
            f"{name}: at η = {RATE:g} mean reward {told(speed[name])}, and H {told(left[name])} is left; at "
            f"η = {FASTER:g} last reward {told(end[name])}"
            for name in MASKS
        ),
        numbers_of(
            {f"mean reward, η = {RATE:g}, {name}": x for name, x in speed.items()}
            | {f"last reward, η = {FASTER:g}, {name}": x for name, x in end.items()}
            | {f"H, η = {RATE:g}, {name}": x for name, x in left.items()}
        ),
        *settle(check),
        null=f"GRPO: mean reward {told(speed['GRPO'])}, H {told(left['GRPO'])}; no mask: last reward "
        f"{told(end['no mask'])}",
    )
