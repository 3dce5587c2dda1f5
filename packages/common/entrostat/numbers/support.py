"""Policy restricted to its likeliest actions, at another temperature, and its entropy."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Support:
    """Set of likely actions: the `top_k` likeliest of the smallest set with probability at least `top_p`, without those
    below `min_p` times the largest probability.

    The policy on the set is p^(1/temperature), renormalised. A tensor has one value per leading run, (runs…,).
    """

    top_k: int | float | Tensor = 0
    """Upper limit for the number of actions; 0 disables it."""
    top_p: float | Tensor = 1.0
    """Total probability that the set must reach; 1 disables the limit."""
    min_p: float | Tensor = 0.0
    """Lower limit for an action's probability, relative to the likeliest action's; 0 disables it."""
    temperature: float | Tensor = 1.0
    """Above 1 the policy on the set is flatter than p. Only for a proxy: a bonus on the truncated entropy has 1."""

    def mask(self, logp: Tensor) -> Tensor:
        """Return a mask of the actions in the set, bool (..., V), for log p (..., V). Ties prefer the lower index."""
        likely = logp >= logp.amax(-1, keepdim=True) + _per_run(self.min_p, logp).log()
        return likely & self._among_likeliest(logp) if self._ranked else likely

    @property
    def _ranked(self) -> bool:
        """True if the set may depend on the order of the probabilities, so that they must be sorted."""
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
    """Return log of p^(1/temperature) on the support, renormalised, −inf outside: (..., V). No gradient of the set."""
    inside = logp.masked_fill(~support.mask(logp.detach()), -torch.inf)
    return torch.log_softmax(inside / _per_run(support.temperature, logp).to(logp.dtype), -1)


def truncated_entropy(logp: Tensor, support: Support) -> Tensor:
    """Return the entropy of the renormalised policy on the support, (...,), nats, for log p or logits (..., V).

    Differentiable.
    """
    return entropy_of(truncated_logp(torch.log_softmax(logp, -1), support))


def entropy_of(logp: Tensor) -> Tensor:
    """Return the entropy of log p (..., V), (...,); entries may be −inf. Differentiable."""
    return -(logp.exp() * logp.masked_fill(logp == -torch.inf, 0.0)).sum(-1)
