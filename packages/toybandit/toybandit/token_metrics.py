"""The metrics of `entrostat.diagnostics` over the passes of a rollout."""

import torch
from torch import Tensor

from entrostat import LocalReduce, Plan, Tokens, diagnose
from entrostat.controller import as_state
from entrostat.diagnostics import EntropyTrace, merge

from .environments import Environment


class TokenMetrics:
    """Collects what the updates of one rollout after another have done; all tensors are (runs,)."""

    def __init__(self, environment: Environment, reduce: LocalReduce) -> None:
        if environment.enumerated:
            raise ValueError("diagnostics are statistics over a sample, and this env enumerates outcomes instead")
        self.reduce = reduce
        # Flow is per unit step size: SGD's own where states are apart, and what past changes say otherwise.
        alone = environment.update == "sgd" and environment.coupling == 0 and environment.kernel is None
        lr = as_state(torch.tensor(environment.lr))
        self.trace = EntropyTrace(step_size=lr if alone else None)
        self.updates: list[dict[str, Tensor]] = []

    def rollout(self, entropy: Tensor) -> dict[str, Tensor]:
        """What is known before the updates, of the mean entropy (runs,); NaN is not known yet."""
        found = self.trace.observe(entropy)
        names = ("entropy/ema", "entropy_change/measured", "entropy_change/predicted")
        return {name: found.get(name, torch.full_like(entropy, torch.nan)) for name in names}

    def update(self, tokens: Tokens, plan: Plan) -> None:
        """Look at one pass."""
        found = diagnose(tokens, plan, reduce=self.reduce)
        found.pop("entropy", None)  # the policy's own is known exactly
        self.updates.append(found)

    def step(self) -> dict[str, Tensor]:
        """The passes of the rollout as one."""
        merged = merge(self.updates)
        self.trace.expect(merged.get("flow/total"))
        self.updates = []
        return merged
