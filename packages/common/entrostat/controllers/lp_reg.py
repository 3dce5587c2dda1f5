"""Penalty that pulls unlikely tokens back to a proxy of the rollout policy without its noise."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..numbers.support import Support
from ..plan import Plan, rounding
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number, Share
from .covariance import share_of_tokens


@register("lp_reg")
@dataclass(kw_only=True)
class LpReg(Controller):
    """+beta·kl(proxy ‖ π) on the max(int(share·N), 1) least likely tokens, if A < 0 and π is below the proxy.

    kl is k3 at the sampled token, as released. The proxy is π_old restricted to the actions with at least min_p of the
    likeliest action's probability, renormalised. If these have the total probability P, the penalty outweighs an
    advantage A once the ratio r is so low that |A|·r < beta·(1/(P·r) − 1), as at r = .62 for A = −1, beta = 1 and
    P = 1; at r = 1 only if |A| < beta·(1/P − 1). The only clip is an upper bound of 10 on the ratio, unless the chain
    names a surrogate.
    """

    share: Share = 0.01
    """Share of the mini-batch's tokens to penalise, least likely first. The authors take .005 for 32B parameters."""
    beta: NotNegative = 1.0
    """Coefficient of the penalty."""
    min_p: Annotated[Number, "(0, 1]"] = 0.02
    """Probability, relative to the likeliest action's, below which an action is noise."""
    among_negative: bool = False
    """Take the share among the tokens with A < 0 instead of all tokens."""
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "released": {"among_negative": True}}
    source: ClassVar = "Huang et al. 2025 (Lp-Reg)"
    quadrants: ClassVar = ("III",)
    implied_surrogate: ClassVar = ("ppo", {"eps_low": 1.0, "eps_high": 9.0, "dual_clip": inf})
    anchored = True

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"logp", "proxy_logp"})

    @property
    def proxy(self) -> Support:
        return Support(min_p=self.min_p)

    def transform(self, plan: Plan, context: Context) -> Plan:
        tokens, advantage = context.tokens, context.tokens.advantage
        logp, proxy = tokens.get("logp"), tokens.get("proxy_logp")
        failures, rarity = advantage < 0, -logp.expand(advantage.shape)
        size = share_of_tokens(self.share, context.size)
        if self.among_negative:
            rarity = rarity.masked_fill(~failures, -inf)
            size = share_of_tokens(self.share, context.reduce.count(failures))
        unlikely = context.reduce.top_k(rarity, size, tie=lambda: context.uniform(self.name))
        gap = proxy - logp
        shielded = unlikely & failures & (gap > rounding(logp) * (1 + logp.abs()))
        pull = torch.where(shielded, gap.expm1(), 0.0)
        total, count = context.reduce.sum(pull), context.reduce.count(shielded)
        info = {"lp_reg/shielded": context.share(shielded), "lp_reg/pull": total / count.clamp(min=1)}
        coef = torch.where(shielded, column(self.beta, advantage), 0.0)
        return plan.add_ref_kl(coef, torch.where(shielded, proxy, logp), "k3").changed(info={**plan.info, **info})
