"""The tabular-softmax policy: what tokens see of it, and how a loss on tokens becomes a gradient on logits."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from entrostat import policy_stats
from entrostat.support import Support, truncated_logp

MOMENTS = ("s2", "s2l", "s2ll")


class Policy(NamedTuple):
    """softmax of logits (runs, S, K)."""

    logits: Tensor
    logp: Tensor
    """(runs, S, K), nats."""
    p: Tensor
    """(runs, S, K)."""
    entropy: Tensor
    """(runs, S), nats."""


def softmax_policy(logits: Tensor) -> Policy:
    """The policy of finite logits (runs, S, K)."""
    logp = logits - logits.logsumexp(-1, keepdim=True)  # twice as fast as log_softmax when K is small
    p = logp.exp()
    return Policy(logits, logp, p, -(p * logp).sum(-1))


def per_token(x: Tensor, arm: Tensor) -> Tensor:
    """Give every sample of a state the state's number: x (runs, S), arm (runs, S, n), result (runs, S·n)."""
    return x.unsqueeze(-1).expand(arm.shape).flatten(1)


def token_logp(policy: Policy, arm: Tensor) -> Tensor:
    """log π of the arms (runs, S, n), flat: (runs, S·n)."""
    return policy.logp.gather(-1, arm).flatten(1)


def token_moments(policy: Policy, arm: Tensor, needs: Collection[str]) -> dict[str, Tensor]:
    """Those of s2, s2l and s2ll that are needed, (runs, S·n) each."""
    wanted = [name for name in MOMENTS if name in needs]
    if not wanted:
        return {}
    stats = policy_stats(policy.logits)
    return {name: per_token(getattr(stats, name), arm) for name in wanted}


def logit_gradient(policy: Policy, arm: Tensor, dlogp: Tensor, dentropy: Tensor | None) -> Tensor:
    """Gradient of a loss in the logits, (runs, S, K), from its derivatives in log π and H of each token (runs, S·n).

    ∂ log p_a/∂z = e_a − p and ∂H/∂z = −p(log p + H); arm is (runs, S, n).
    """
    each = dlogp.reshape(arm.shape)
    gradient = torch.zeros_like(policy.p).scatter_add_(-1, arm, each) - policy.p * each.sum(-1, keepdim=True)
    if dentropy is None:
        return gradient
    bonus = dentropy.reshape(arm.shape).sum(-1, keepdim=True)
    return gradient - bonus * policy.p * (policy.logp + policy.entropy.unsqueeze(-1))


def truncated(policy: Policy, support: Support) -> tuple[Tensor, Tensor]:
    """log of the policy on the support, renormalised and −inf outside, (runs, S, K), and its entropy (runs, S)."""
    logp = truncated_logp(policy.logp, support)
    p = logp.exp()
    return logp, -torch.where(p > 0, p * logp, 0.0).sum(-1)


def truncated_gradient(policy: Policy, support: Support, arm: Tensor, dentropy: Tensor) -> Tensor:
    """Gradient of a loss in the logits, (runs, S, K), from its derivative in each token's truncated entropy.

    ∂H_S/∂z = −p_S(log p_S + H_S) on the support and 0 outside; arm is (runs, S, n), dentropy (runs, S·n).
    """
    logp, entropy = truncated(policy, support)
    p = logp.exp()
    slope = torch.where(p > 0, p * (logp + entropy.unsqueeze(-1)), 0.0)
    return -dentropy.reshape(arm.shape).sum(-1, keepdim=True) * slope
