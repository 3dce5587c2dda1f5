"""Entropy bonus on the likeliest actions of the most uncertain tokens, anchored at the entropy of the first rollout."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from ..controller import Context, Controller, StepStats
from ..numbers.per_run import as_state, column, reading
from ..numbers.segments import quantile_within
from ..numbers.support import Support
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("siren")
@dataclass(kw_only=True)
class Siren(Controller):
    """+beta·(H̄ − H̄_0)², H̄ the mean of H_S over the tokens whose H_S is above the quantile tau of their response.

    H_S is the entropy of the policy restricted to its top-p actions S and renormalised, H̄_0 is H̄ in the first rollout,
    which has no penalty. The gradient is that of a bonus of 2·beta·(H̄_0 − H̄) on H_S of these tokens, which lowers
    entropies once H̄ is above H̄_0. Needs the logits, as truncated_entropy_bonus does. The released code leaves the
    action that reaches top_p out of S, takes H̄ in each micro-batch, and averages it over responses first.
    """

    beta: NotNegative = 0.005
    """Coefficient of the penalty."""
    tau: Annotated[float, "[0, 1)"] = 0.8
    """Share of the tokens of a response, lowest entropy first, that get no penalty."""
    top_p: Annotated[Number, "(0, 1]"] = 0.8
    """Total probability that S must reach."""
    per_response: bool = True
    """Take the quantile within each response; if false over the mini-batch, for responses of few tokens."""
    source: ClassVar = "Jiang et al. 2025 (SIREN), and its released code"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    learns: ClassVar = True
    state: ClassVar = ("anchor",)
    controls = "bonus"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.anchor = as_state(torch.nan)
        """H̄_0; NaN until the first rollout has been trained on."""

    @property
    def support(self) -> Support:
        return Support(top_p=self.top_p)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"truncated_entropy", *(("seq_id",) if self.per_response else ())})

    def observe(self, stats: StepStats) -> None:
        total, updates = (reading(stats.planned.get(f"siren/{key}", 0.0)) for key in ("entropy", "updates"))
        first = torch.where(updates > 0, total / updates, torch.nan)
        self.anchor = torch.where(self.anchor.isnan(), first, self.anchor)

    def transform(self, plan: Plan, context: Context) -> Plan:
        entropy = context.tokens.get("truncated_entropy").expand(context.tokens.advantage.shape)
        uncertain = self._uncertain(entropy, context)
        found = context.reduce.count(uncertain)
        count = found.clamp(min=1).double()
        mean = context.reduce.sum(torch.where(uncertain, entropy, 0.0)) / count
        missing = (self.anchor.to(mean.device) - mean).nan_to_num(0.0)
        coef = 2 * as_state(self.beta).to(mean.device) * missing * context.size / count
        told = {"entropy": mean, "updates": (found > 0).double(), "share": context.share(uncertain)}
        info = {f"siren/{key}": value for key, value in told.items()}
        return plan.add_truncated_bonus(torch.where(uncertain, column(coef, entropy), 0.0), **info)

    def _uncertain(self, entropy: Tensor, context: Context) -> Tensor:
        """Return a mask (..., N) of the tokens above the quantile."""
        if self.per_response:
            responses = context.sequences
            return entropy > responses.spread(quantile_within(entropy, responses, self.tau))
        wanted = int((1 - self.tau) * context.size + 1e-9)
        return context.reduce.top_k(entropy, wanted, tie=lambda: context.uniform(self.name))
