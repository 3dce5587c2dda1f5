"""PRIME's implicit process reward: a second model, whose log-ratio to a reference is a reward, learns from outcomes.

    reward of a response    r = β Σ_t [log π_prm(o_t) − log π_ref(o_t)]        of a token: its term of the sum
    loss                    −[y log σ(r) + (1 − y) log σ(−r)], y the verdict, mean over the responses of all ranks

Source: Cui et al. 2025 (PRIME), eq. 3 and 5; lr 1e-6 and β .05 are its values. Both models start as the policy does.
"""

from typing import Any

import torch
from torch import Tensor

from .batch import Batch
from .config import OptimConfig, PrimeConfig
from .engine import NonFiniteError, clip
from .policy import Policy
from .ranks import Ranks


class ImplicitReward:
    """Both models are whole on every rank; ranks learn from the responses of all."""

    def __init__(self, model: Policy, reference: Policy, config: PrimeConfig, optim: OptimConfig, ranks: Ranks) -> None:
        self.model, self.reference, self.config, self.ranks = model, reference, config, ranks
        self.budget, self.max_grad_norm = optim.micro_batch_tokens, optim.max_grad_norm
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=config.lr, weight_decay=0.0)

    def learn(self, batch: Batch, ref_logp: Tensor, correct: Tensor) -> dict[str, float]:
        """One optimizer step on the verdicts (B,) of the responses; metrics of the model as it was before.

        Raises NonFiniteError on every rank, before anything moves, when the gradient is not finite.
        """
        count = float(self.ranks.total(torch.tensor(float(len(batch)))))
        slices = self.model.slices(batch, torch.arange(len(batch)), self.budget)
        total, right = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        self.optimizer.zero_grad()
        for some in slices:
            logp = self.model.token_stats(batch, some).logp
            owner = torch.repeat_interleave(torch.arange(len(some)), batch.response_lengths[some]).to(logp.device)
            gap = logp - ref_logp[batch.response_index(some).to(logp.device)]
            reward = self.config.beta * gap.new_zeros(len(some)).scatter_add(0, owner, gap)
            verdict = correct[some].to(reward)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(reward, verdict, reduction="sum") / count
            loss.backward()
            total += loss.detach().cpu()
            right += ((reward.detach() > 0) == (verdict > 0.5)).sum().cpu() / count
        for parameter in self.parameters:
            own = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            parameter.grad = self.ranks.total(own)
        norm = clip(self.parameters, self.max_grad_norm)
        if not torch.isfinite(torch.tensor(norm)):
            raise NonFiniteError(f"gradient norm of the implicit reward model is {norm}")
        self.optimizer.step()
        found = self.ranks.total(torch.stack([total, right])).tolist()
        return {"prime/loss": found[0], "prime/accuracy": found[1], "prime/grad_norm": norm}

    def state_dict(self) -> dict[str, Any]:
        weights = {name: p.detach().cpu() for name, p in self.model.model.named_parameters()}
        return {"weights": weights, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            for name, parameter in self.model.model.named_parameters():
                parameter.copy_(state["weights"][name])
        self.optimizer.load_state_dict(state["optimizer"])
