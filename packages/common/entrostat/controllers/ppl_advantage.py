"""Advantages weighted by the perplexity of the whole response."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan, rounding
from ..registry import register
from ..settings.hyperparameters import NotNegative, Number


@register("ppl_advantage")
@dataclass(kw_only=True)
class PplAdvantage(Controller):
    """Weight clamp(1 − alpha·z, weight_min, weight_max), z the standard score of log PPL = −mean log π_old.

    Mean and (unbiased) standard deviation are over the responses of the mini-batch whose PPL is finite. Responses of
    low PPL weigh more. If the PPLs differ by rounding only, every weight is 1.
    """

    alpha: NotNegative = 0.01
    """Weight reduction per standard deviation of log PPL."""
    weight_min: Number = 0.8
    """Smallest weight."""
    weight_max: Number = 1.2
    """Largest weight."""
    source: ClassVar = "Deng et al. 2025 (Decomposing the Entropy-Performance Exchange); STEER, table 6"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = torch.as_tensor(self.weight_min), torch.as_tensor(self.weight_max)
        self._require((low >= 0) & (low <= high), "weight_min must lie between 0 and weight_max")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"old_logp", "seq_id"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        responses, reduce = context.sequences, context.reduce
        old_logp = context.tokens.get("old_logp")
        log_ppl = -responses.mean(old_logp.double())
        finite = log_ppl.isfinite()
        count = reduce.count(finite)
        mean = reduce.sum(torch.where(finite, log_ppl, 0.0)) / count.clamp(min=1)
        centred = (log_ppl - mean.unsqueeze(-1)).nan_to_num()
        variance = reduce.sum(torch.where(finite, centred, 0.0) ** 2) / (count - 1).clamp(min=1)
        std = variance.sqrt().unsqueeze(-1)
        least = rounding(old_logp) * (1 + mean.abs().unsqueeze(-1))
        score = torch.where(std > least, centred / std, 0.0)
        weight = 1 - column(self.alpha, score) * score
        weight = weight.clamp(column(self.weight_min, score), column(self.weight_max, score))
        return plan.reweight(responses.spread(weight).to(plan.weight.dtype))
