"""Metrics of `entrostat.diagnostics` over the passes of a rollout."""

import torch
from torch import Tensor

from entrostat import LocalReduce, Plan, Tokens, diagnose
from entrostat.diagnostics import EntropyTrace, merge
from entrostat.numbers.per_run import as_state

from .environments import Environment


class TokenMetrics:
    """Collector of token metrics, rollout by rollout; all tensors are (runs,)."""

    def __init__(self, environment: Environment, reduce: LocalReduce) -> None:
        if environment.enumerated:
            raise ValueError("diagnostics are statistics over a sample, but this env enumerates outcomes instead")
        self.reduce = reduce
        # Flow is per unit step size: the SGD step size if states are independent, else estimated from past changes.
        alone = environment.is_on_logits and environment.update == "sgd"
        alone = alone and environment.coupling == 0 and environment.kernel is None
        lr = as_state(torch.tensor(environment.lr))
        self.trace = EntropyTrace(step_size=lr if alone else None)
        self.updates: list[dict[str, Tensor]] = []

    def rollout(self, entropy: Tensor) -> dict[str, Tensor]:
        """Return the metrics of the mean entropy (runs,) known before the updates; NaN for a metric not yet known."""
        found = self.trace.observe(entropy)
        names = ("entropy/ema", "entropy_change/measured", "entropy_change/predicted")
        return {name: found.get(name, torch.full_like(entropy, torch.nan)) for name in names}

    def update(self, tokens: Tokens, plan: Plan) -> None:
        """Add the metrics of one pass."""
        found = diagnose(tokens, plan, reduce=self.reduce)
        found.pop("entropy", None)  # the policy's entropy is known exactly
        self.updates.append(found)

    def step(self) -> dict[str, Tensor]:
        """Return the metrics of the rollout's passes, merged, and start the next rollout."""
        merged = merge(self.updates)
        self.trace.expect(merged.get("flow/total"))
        self.updates = []
        return merged
