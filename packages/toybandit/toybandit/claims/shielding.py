"""A penalty that shields unlikely tokens from being pushed out of the policy: Lp-Reg."""

from functools import cache
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import Tokens, make, policy_stats
from entrostat.support import Support, truncated_logp

from ..trajectory import Array
from .checks import above, every, numbers_of, settle, told
from .ensembles import random_logits
from .pictures import picture
from .registry import Effort, Finding, claim, holds_if, judge
from .runs import trajectory

PAPER = "Lp-Reg"
MIN_P = 0.02
FALLEN = 0.6
"""A ratio to which a shielded token has to fall: 1 less two fifths."""
MORE = 0.1
"""A share of the tokens that reaches those which the proxy keeps."""
MARGIN = 0.05
"""Nats by which an entropy is to be above another, beyond what draws make."""
PASSES = {"used once": 1, "reused": 8}
CONTROLLERS: dict[str, dict[str, Any]] = {
    "GRPO": {"controller": "grpo"},
    "Lp-Reg": {"controller": "lp_reg"},
    f"Lp-Reg, {MORE:.0%}": {"controller": "lp_reg", "controller_args": {"share": MORE}},
}


def least_likely(logits: Tensor, min_p: float = MIN_P) -> tuple[Tensor, Tensor]:
    """log π and log of the proxy, (instances,), of the least likely action that it keeps; logits (instances, K)."""
    logp = policy_stats(logits).logp
    proxy = truncated_logp(logp, Support(min_p=min_p))
    arm = torch.where(proxy > -torch.inf, logp, torch.inf).argmin(-1, keepdim=True)
    return logp.gather(-1, arm).squeeze(-1), proxy.gather(-1, arm).squeeze(-1)


def pushed_down(
    old_logp: Tensor, proxy: Tensor, ratio: float | Tensor, advantage: float = -1.0, beta: float = 1.0
) -> tuple[Tensor, Tensor]:
    """∂loss/∂log π at ratios π/π_old, without the penalty and with it, (n,): a descent lowers π where it is positive.

    Every token is a mini-batch of its own.
    """
    shape, moved = (old_logp.shape[0], 1), torch.as_tensor(ratio, dtype=old_logp.dtype).log()
    column = {"old_logp": old_logp, "proxy_logp": proxy, "logp": old_logp + moved}
    tokens = Tokens(
        advantage=torch.full(shape, advantage, dtype=old_logp.dtype),
        **{name: x.expand(old_logp.shape).unsqueeze(-1) for name, x in column.items()},
    )
    rules = make("clip_free"), make("clip_free+lp_reg", share=1.0, beta=beta)
    plain, shielded = (rule.plan(tokens).coefficients(tokens.get("logp"))[0].squeeze(-1) for rule in rules)
    return plain, shielded


@claim(
    "lp-reg-shield",
    paper=PAPER,
    source="section on the objective",
    assumption="the least likely action with 2 % of the likeliest one's probability, A = −1, published β = 1",
    predicted="the penalty keeps a failure from taking probability away from it",
    expected=holds_if("the token has lost two fifths of its probability"),
)
def lp_reg_shield(effort: Effort) -> Finding:
    """The proxy differs from the policy by the noise that it leaves out, so that on the first update there is little to
    pull a token back. It is held where |A|·r² + β·r = β/P, P the probability of what the proxy keeps: at r = .62 for
    P = 1. A ratio clip at .8 stops it before that."""
    old, proxy = least_likely(random_logits(effort.instances, 64, 2.0, "lp-reg"))
    push, total = pushed_down(old, proxy, 1.0)
    pull = 1 - total / push
    held = ((1 + 4 * (proxy - old).exp()).sqrt() - 1) / 2
    at_held = pushed_down(old, proxy, held)[1].abs().max()
    numbers = {
        "median share of the push that the penalty takes away at r = 1": float(pull.median()),
        "largest share": float(pull.max()),
        "least ratio where a token is held": float(held.min()),
        "largest ratio": float(held.max()),
        "derivative there, at most": float(at_held),
    }
    return Finding(
        f"at r = 1 the penalty takes {float(pull.median()):.1%} of the push away, {float(pull.max()):.1%} at most; "
        f"tokens are held at r = {float(held.min()):.2f} to {float(held.max()):.2f}",
        numbers,
        judge(
            bool((total <= 0).all()),
            "the token has lost two fifths of its probability",
            bool((pushed_down(old, proxy, FALLEN)[1] <= 0).all()) and float(at_held) < 1e-12,
        ),
    )


@cache
def shielded(effort: Effort) -> dict[str, dict[str, Any]]:
    """The runs in `noisy` of each of CONTROLLERS, by what happens to the samples of a rollout."""
    return {
        use: {name: trajectory(effort, env="noisy", passes=passes, **config) for name, config in CONTROLLERS.items()}
        for use, passes in PASSES.items()
    }


def entropies_of(effort: Effort) -> dict[str, dict[str, Array]]:
    return {use: {name: run.entropy for name, run in found.items()} for use, found in shielded(effort).items()}


@claim(
    "lp-reg-entropy",
    paper=PAPER,
    source="section on experiments",
    assumption="noisy; samples are used once, or in 8 passes; published values, no lower ratio clip",
    predicted=f"the entropy ends above GRPO's, by {MARGIN} nats at least",
    expected=holds_if("a tenth of the tokens is penalised, and samples are reused"),
)
def lp_reg_entropy(effort: Effort) -> Finding:
    """The least likely hundredth of the tokens is what the proxy leaves out as noise, so that hardly any is shielded.
    Where samples are used once the penalty has little to act on, however many it is given."""
    final = {use: {name: h[:, -1] for name, h in found.items()} for use, found in entropies_of(effort).items()}
    share = {use: found["Lp-Reg"].metrics["lp_reg/shielded"].mean(-1) for use, found in shielded(effort).items()}
    measured = "; ".join(
        f"samples {use}: " + ", ".join(f"{name} {told(values)}" for name, values in found.items())
        for use, found in final.items()
    )
    published = every(above(found["Lp-Reg"] - found["GRPO"], MARGIN) for found in final.values())
    grpo, _, more = final["reused"].values()
    few = " and ".join(f"{x.mean():.3%}" for x in share.values())
    return Finding(
        f"final H, {measured}; shielded are {few} of the tokens under Lp-Reg as published",
        numbers_of(
            {f"{name}, samples {use}": values for use, found in final.items() for name, values in found.items()}
            | {f"share shielded, samples {use}": values for use, values in share.items()}
        ),
        *settle(published, "a tenth of the tokens is penalised, and samples are reused", above(more - grpo, MARGIN)),
    )


@picture(
    "lp-reg-entropy",
    caption="Entropy in NOISY under GRPO and under Lp-Reg with the published share of the tokens and with a tenth.",
)
def draw_shielded(figure: Figure, effort: Effort) -> None:
    for axes, (use, found) in zip(figure.subplots(1, 2, sharey=True), entropies_of(effort).items(), strict=True):
        for name, entropy in found.items():
            axes.plot(entropy.mean(0), label=name)
        axes.set(title=f"samples {use}", xlabel="rollout", ylim=(0, None))
    figure.axes[0].set_ylabel("mean entropy (nats)")
    figure.axes[0].legend()
