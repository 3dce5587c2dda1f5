"""A penalty that keeps unlikely tokens from being pushed out of the policy: Lp-Reg."""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import Tokens, make, policy_stats
from entrostat.controllers.lp_reg import LpReg
from entrostat.numbers.support import Support, truncated_logp

from ..trajectory import Array
from .checks import above, every, numbers_of, settle, told
from .ensembles import random_logits
from .live_case import NOISY, Live, within
from .memory import remember
from .mutations import Mutation, Swap, scaled
from .pictures import panels, picture
from .registry import Effort, Finding, claim, holds_if, judge
from .runs import trajectory

PAPER = "Lp-Reg"
MIN_P = 0.02
FALLEN = 0.6
"""Ratio to which a shielded token must fall: 1 minus two fifths."""
MORE = 0.1
"""Share of the tokens large enough to include tokens that the proxy keeps."""
MARGIN = 0.05
"""Required difference of two entropies, larger than sampling noise, nats."""
PASSES = {"used once": 1, "reused": 8}
CONTROLLERS: dict[str, dict[str, Any]] = {
    "GRPO": {"controller": "grpo"},
    "Lp-Reg": {"controller": "lp_reg"},
    f"Lp-Reg, {MORE:.0%}": {"controller": "lp_reg", "controller_args": {"share": MORE}},
}


def least_likely(logits: Tensor, min_p: float = MIN_P) -> tuple[Tensor, Tensor]:
    """Return log π and log proxy, (instances,), of the least likely action in the proxy; logits (instances, K)."""
    logp = policy_stats(logits).logp
    proxy = truncated_logp(logp, Support(min_p=min_p))
    arm = torch.where(proxy > -torch.inf, logp, torch.inf).argmin(-1, keepdim=True)
    return logp.gather(-1, arm).squeeze(-1), proxy.gather(-1, arm).squeeze(-1)


def pushed_down(
    old_logp: Tensor, proxy: Tensor, ratio: float | Tensor, advantage: float = -1.0, beta: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Return ∂loss/∂log π at ratios π/π_old, without and with the penalty, (n,); a descent step lowers π if positive.

    Every token is its own mini-batch.
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


def opposite(pushes: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return `pushed_down` with a penalty of the other sign."""

    def changed(*at: Any) -> tuple[Tensor, Tensor]:
        plain, total = pushes(*at)
        return plain, 2 * plain - total

    return changed


@claim(
    "lp-reg-shield",
    paper=PAPER,
    source="section on the objective",
    words="a penalty towards the renormalised proxy protects tokens of low probability that are no noise from being "
    "pushed out by failures",
    statement=(
        r"\frac{\partial}{\partial \log \pi}\left[-rA + \beta\,\operatorname{kl}(q \,\Vert\, \pi)\right] \le 0,",
        r"q = \pi_{\mathrm{old}}\ \text{without noise},\quad A < 0",
    ),
    assumption="the least likely action with at least 2 % of the likeliest one's probability, A = −1, published β = 1",
    threshold="no action with net push down at r = 1; under the condition, none at r = .6, just below the "
    "r = .62 at which pull and push are equal if the proxy keeps everything",
    null="no penalty: the push of A = −1 alone",
    expected=holds_if("the token has lost two fifths of its probability"),
    mutations=(
        Mutation(
            "the penalty were off",
            Swap(__name__, "pushed_down", lambda f: lambda *at: (f(*at)[0], f(*at)[0])),
        ),
        Mutation("the penalty had the other sign", Swap(__name__, "pushed_down", opposite)),
        Mutation("β were half", Swap(__name__, "pushed_down", lambda f: lambda *at: f(*at, beta=0.5))),
    ),
    live=Live("shield", turned={"ratio": 1.0}, conditions=(within("ratio", high=FALLEN, stated=False),)),
)
def lp_reg_shield(effort: Effort) -> Finding:
    """The proxy differs from the policy only by the noise that it leaves out, so on the first update it hardly pulls a
    token back. The token is held where |A|·r² + β·r = β/P, with P the probability of the actions that the proxy keeps:
    at r = .62 for P = 1. A ratio clip at .8 stops the token before that."""
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
        f"at r = 1 the penalty removes {float(pull.median()):.1%} of the push, {float(pull.max()):.1%} at most; "
        f"tokens are held at r = {float(held.min()):.2f} to {float(held.max()):.2f}",
        numbers,
        judge(
            bool((total <= 0).all()),
            "the token has lost two fifths of its probability",
            bool((pushed_down(old, proxy, FALLEN)[1] <= 0).all()) and float(at_held) < 1e-12,
        ),
        null=f"net push {float(push.min()):.2f} at r = 1, {float(pushed_down(old, proxy, FALLEN)[0].min()):.2f} at "
        f"r = {FALLEN}",
    )


@remember
def shielded(effort: Effort) -> dict[str, dict[str, Any]]:
    """Return the runs in `noisy` of each of CONTROLLERS, by the use of a rollout's samples."""
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
    words="with the penalty the entropy does not collapse as it does under GRPO",
    statement=r"H_{\mathrm{end}}(\text{Lp-Reg}) > H_{\mathrm{end}}(\text{GRPO}) + 0.05",
    assumption="noisy; samples are used once, or in 8 passes; published values, no lower ratio clip",
    threshold=f"a final entropy above the null's by at least {MARGIN} nats, more than the noise of a mean over runs",
    null="GRPO without the penalty",
    expected=holds_if("a tenth of the tokens is penalised, and samples are reused"),
    mutations=(
        Mutation("the penalty were off", Swap(LpReg, "transform", scaled("beta", 0.0))),
        Mutation("the penalty had the other sign", Swap(LpReg, "transform", scaled("beta", -1.0))),
    ),
    live=Live(
        "lp-reg",
        turned={"share": 0.01},
        conditions=(NOISY, within("share", low=0.1, stated=False)),
    ),
)
def lp_reg_entropy(effort: Effort) -> Finding:
    """The proxy leaves out the least likely hundredth of the tokens as noise, so hardly any of them is shielded. If
    samples are used once, the penalty has little to act on, however many tokens it may shield."""
    final = {use: {name: h[:, -1] for name, h in found.items()} for use, found in entropies_of(effort).items()}
    share = {use: found["Lp-Reg"].metrics["lp_reg/shielded"].mean(-1) for use, found in shielded(effort).items()}
    measured = "; ".join(
        f"samples {use}: " + ", ".join(f"{name} {told(values)}" for name, values in found.items() if name != "GRPO")
        for use, found in final.items()
    )
    published = every(above(found["Lp-Reg"] - found["GRPO"], MARGIN) for found in final.values())
    grpo, _, more = final["reused"].values()
    few = " and ".join(f"{x.mean():.3%}" for x in share.values())
    return Finding(
        f"final H, {measured}; Lp-Reg as published shields {few} of the tokens",
        numbers_of(
            {f"{name}, samples {use}": values for use, found in final.items() for name, values in found.items()}
            | {f"share shielded, samples {use}": values for use, values in share.items()}
        ),
        *settle(published, "a tenth of the tokens is penalised, and samples are reused", above(more - grpo, MARGIN)),
        null="final H, " + ", ".join(f"samples {use} {told(found['GRPO'])}" for use, found in final.items()),
    )


@picture(
    "lp-reg-entropy",
    caption="Entropy in NOISY under GRPO and under Lp-Reg with the published share of the tokens and with a tenth.",
)
def draw_shielded(figure: Figure, effort: Effort) -> None:
    panels(figure, {f"samples {use}": found for use, found in entropies_of(effort).items()})
