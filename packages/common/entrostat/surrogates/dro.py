"""Policy gradient held near the rollout policy by a square of the log-ratio instead of by clipping."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..numbers.per_run import column
from ..plan import Plan, Slice
from ..registry import register
from ..settings.hyperparameters import Positive
from ..tokens import Tokens
from .base import SurrogateController, held_near_rollout, never


@register("dro")
@dataclass(kw_only=True)
class DRO(SurrogateController):
    """−A·log π + (beta/2)·log²r on every token: no ratio multiplies A, and no token is stopped.

    The gradient is (beta·log r − A)·∇log π, that of the squared error (A − beta·log r)²/(2·beta), which is 0 where
    log r = A/beta. The papers square the log-ratio of a whole response, to the reference policy (DRO) or to that of the
    last iteration (Kimi); verl and Tinker, followed here, that of each token, to the rollout policy. The penalty also
    acts on tokens that a controller drops; a plan has one such penalty, so not with `kl_ref`.
    """

    beta: Positive = 0.05
    """Coefficient of log²r/2. Without published value: the example of Tinker's documentation; verl has no default."""
    source: ClassVar = (
        "Richemond et al. 2024 (DRO, arXiv 2405.19107); Kimi Team 2025 (k1.5, arXiv 2501.12599), section 2.3.2; "
        "verl, compute_policy_loss_dro"
    )
    quadrants: ClassVar = ("I", "II", "III", "IV")
    anchored = True

    def start(self, tokens: Tokens) -> Plan:
        return held_near_rollout(super().start(tokens), tokens, column(self.beta, tokens.advantage))

    def loss(self, logp: Tensor, s: Slice) -> Tensor:
        return torch.where(logp.isneginf(), 0.0, -s.advantage * logp)  # its penalty is ∞, and ∞ − ∞ is NaN

    def slope(self, logp: Tensor, s: Slice) -> Tensor:
        return -s.advantage.expand(logp.shape)

    def stopped(self, logp: Tensor, s: Slice) -> Tensor:
        return never(logp, s)
