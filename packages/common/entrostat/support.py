"""Entropy of a policy restricted to its likeliest actions."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Support:
    """Which actions count: the `top_k` likeliest of the smallest set with probability at least `top_p`, of those that
    have `min_p` of the likeliest one's probability.

    A tensor has one value for each leading run, (runs…,).
    """

    top_k: int | float | Tensor = 0
    """How many actions at most; 0 is no limit."""
    top_p: float | Tensor = 1.0
    """Probability that the set must reach; 1 is no limit."""
    min_p: float | Tensor = 0.0
    """Probability, relative to the likeliest action's, that an action must have; 0 is no limit."""

    def mask(self, logp: Tensor) -> Tensor:
        """Which actions count, bool (..., V), for log p (..., V). Equal probabilities go by the lower index."""
        likely = logp >= logp.amax(-1, keepdim=True) + _per_run(self.min_p, logp).log()
        return likely & self._among_likeliest(logp) if self._ranked else likely

    @property
    def _ranked(self) -> bool:
        """Whether it may matter which actions are likelier than which, for which they are sorted."""
        limits = ((self.top_k, 0), (self.top_p, 1))
        return any(isinstance(limit, Tensor) or limit != none for limit, none in limits)

    def _among_likeliest(self, logp: Tensor) -> Tensor:
        ordered, order = logp.sort(stable=True, dim=-1, descending=True)
        rank = torch.arange(logp.shape[-1], device=logp.device)
        top_k, top_p = (_per_run(x, logp) for x in (self.top_k, self.top_p))
        before = ordered.exp().cumsum(-1) - ordered.exp()
        inside = ((rank < top_k) | (top_k <= 0)) & ((before < top_p) | (top_p >= 1))
        return torch.zeros_like(inside).scatter(-1, order, inside)


def _per_run(value: int | float | Tensor, logp: Tensor) -> Tensor:
    value = torch.as_tensor(value, dtype=torch.float64, device=logp.device)
    return value.reshape(*value.shape, *(1,) * (logp.ndim - value.ndim))


def truncated_logp(logp: Tensor, support: Support) -> Tensor:
    """log of p restricted to the support and renormalised, −inf outside: (..., V). Differentiable; the set is not."""
    return torch.log_softmax(logp.masked_fill(~support.mask(logp.detach()), -torch.inf), -1)


def truncated_entropy(logp: Tensor, support: Support) -> Tensor:
    """Entropy of the renormalised policy on the support, (...,), nats, for log p or logits (..., V). Differentiable."""
    return entropy_of(truncated_logp(torch.log_softmax(logp, -1), support))


def entropy_of(logp: Tensor) -> Tensor:
    """Entropy of log p (..., V), (...,), where some of them may be −inf. Differentiable."""
    return -(logp.exp() * logp.masked_fill(logp == -torch.inf, 0.0)).sum(-1)
