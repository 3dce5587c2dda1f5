"""Penalty on the divergence from a reference policy."""

from dataclasses import dataclass
from typing import ClassVar

from ..controller import Context, Controller
from ..numbers.kl import Estimator
from ..numbers.per_run import column
from ..numbers.resets import ResetEvery
from ..plan import Plan
from ..registry import register
from ..settings.hyperparameters import NotNegative


@register("kl_ref")
@dataclass(kw_only=True)
class KLRef(Controller):
    """+beta·kl(π ‖ π_ref) on every token, with x = log π_ref − log π: k1 = −x, k2 = x²/2, k3 = e^x − x − 1.

    GRPO takes k3. As a loss on samples of the current policy only k2 has the gradient of the divergence: the gradient
    of k1 has mean zero, and k3 has the gradient of KL(π_ref ‖ π).

    With reset_every the reference becomes the present policy every so many rollout steps (ProRL), so that
    the penalty does not come to outweigh the task.
    """

    beta: NotNegative = 0.001
    """Coefficient of the penalty."""
    estimator: Estimator = "k3"
    """Estimator of the divergence: k1, k2 or k3."""
    reset_every: ResetEvery = 0
    """Rollout steps between two resets of the reference to the present policy; 0: it never changes."""
    source: ClassVar = "Shao et al. 2024 (GRPO), equation 4; Schulman 2020; resets: Liu et al. 2025 (arXiv 2505.24864)"
    quadrants: ClassVar = ("I", "II", "III", "IV")
    initial_only: ClassVar = ("reset_every",)
    anchored = True

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"ref_logp"})

    def transform(self, plan: Plan, context: Context) -> Plan:
        beta = column(self.beta, context.tokens.advantage)
        return plan.add_ref_kl(beta, context.tokens.get("ref_logp"), self.estimator)
