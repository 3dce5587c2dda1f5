"""Entropy and collision moments of a categorical policy, from its logits."""

from typing import NamedTuple

import torch
from torch import Tensor


class PolicyStats(NamedTuple):
    """Statistics of a distribution p over V actions that the estimators need; shapes for logits (..., V)."""

    logp: Tensor
    """log p over all actions, (..., V), nats."""
    entropy: Tensor
    """H = −Σ p log p, (...,), nats."""
    s2: Tensor
    """Σ p², (...,)."""
    s2l: Tensor
    """Σ p² log p, (...,)."""
    s2ll: Tensor
    """Σ p² (log p)², (...,)."""


def policy_stats(logits: Tensor) -> PolicyStats:
    """Return the statistics of softmax(logits), logits (..., V), in the dtype of the logits.

    −inf logits have p = 0. A row with NaN or +inf, or with −inf alone, is no distribution: all its statistics are NaN.
    """
    logp = torch.log_softmax(logits, dim=-1)
    p = logp.exp()
    plogp = torch.where(p == 0, 0.0, p * logp)
    return PolicyStats(
        logp=logp,
        entropy=-plogp.sum(-1),
        s2=(p * p).sum(-1),
        s2l=(p * plogp).sum(-1),
        s2ll=(plogp * plogp).sum(-1),
    )
