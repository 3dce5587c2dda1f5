"""PRIME's implicit process reward: a second model whose log-ratio to a reference is the reward, trained on outcomes.

    reward of a response    r = β Σ_t [log π_prm(o_t) − log π_ref(o_t)]        of a token: its term of the sum
    loss                    −[y log σ(r) + (1 − y) log σ(−r)], y the verdict, mean over the responses of all ranks

Source: Cui et al. 2025 (PRIME), eq. 3 and 5; lr 1e-6 and β .05 are the paper's values. Both models start from the
policy's initial weights.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..policy.engine import Engine, NonFiniteError
from ..policy.policy import Policy
from ..sequences.batch import Batch, padded
from ..settings.config import OptimConfig, PrimeConfig


def optim_of(config: PrimeConfig, optim: OptimConfig) -> OptimConfig:
    """Return optimizer settings of the reward model; `optim`: settings of the policy."""
    constant: dict[str, Any] = {"lr_schedule": "constant", "warmup_steps": 0, "min_lr_ratio": 0.0}
    return replace(optim, lr=config.lr, betas=(0.9, 0.999), weight_decay=0.0, **constant)


class ImplicitReward:
    """Reward model and its engine, trained on the responses of all ranks."""

    def __init__(self, model: Policy, engine: Engine, beta: float, budget: int) -> None:
        """budget: upper limit for tokens per forward pass."""
        self.model, self.engine, self.ranks, self.beta, self.budget = model, engine, engine.ranks, beta, budget

    def learn(self, batch: Batch, ref_logp: Tensor, correct: Tensor) -> dict[str, float]:
        """Take one optimizer step on the verdicts (B,) of the responses; return metrics from before the step.

        Raises NonFiniteError on every rank, before any weight changes, if the gradient is not finite.
        """
        try:
            return self._learn(batch, ref_logp, correct)
        except NonFiniteError as error:
            raise NonFiniteError(f"implicit reward model: {error}") from None

    def _learn(self, batch: Batch, ref_logp: Tensor, correct: Tensor) -> dict[str, float]:
        count = float(self.ranks.total(torch.tensor(float(len(batch)))))
        slices = self.model.slices(batch, torch.arange(len(batch)), self.budget)
        total, right = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for some in padded(slices, self.engine.begin(len(slices))):
            logp = self.model.token_stats(batch, some).logp
            owner = torch.repeat_interleave(torch.arange(len(some)), batch.response_lengths[some]).to(logp.device)
            gap = logp - ref_logp[batch.response_index(some).to(logp.device)]
            reward = self.beta * gap.new_zeros(len(some)).scatter_add(0, owner, gap)
            verdict = correct[some].to(reward)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(reward, verdict, reduction="sum") / count
            self.engine.backward(loss)
            total += loss.detach().cpu()
            right += ((reward.detach() > 0) == (verdict > 0.5)).sum().cpu() / count
        norm = self.engine.step()
        found = self.ranks.total(torch.stack([total, right])).tolist()
        return {"prime/loss": found[0], "prime/accuracy": found[1], "prime/grad_norm": norm}
