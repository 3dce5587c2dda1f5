"""EDGE-GRPO: the advantage of a response divided by its relative entropy."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ..controller import Context, Controller
from ..numbers.per_run import column
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import Positive


@register("edge")
@dataclass(kw_only=True)
class Edge(Controller):
    """Weight mean(H̄)/H̄_i: H̄_i the mean entropy of a response, mean(H̄) its mean over the responses of the group.

    Responses of low entropy weigh more, correct or not. A whole group must be in one mini-batch and on one rank. Only
    the entropy-driven advantage of EDGE-GRPO; its guided error correction changes the rollouts. If the responses of a
    group have equal entropies, as in the bandit, this is GRPO.
    """

    entropy_floor: Positive = 1e-3
    """Lower limit of H̄_i and of mean(H̄) (nats), so that a response of entropy 0 has a finite weight. Ours."""
    source: ClassVar = "Zhang et al. 2025 (EDGE-GRPO); STEER, table 6"
    quadrants: ClassVar = ("I", "II", "III", "IV")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy", "group_id", "seq_id"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        responses, groups = context.sequences, context.groups
        entropy = responses.mean(context.tokens.get("entropy"))
        mean = groups.spread(groups.mean(entropy))
        floor = column(self.entropy_floor, entropy)
        return plan.reweight(responses.spread(torch.maximum(mean, floor) / torch.maximum(entropy, floor)))
