"""The tabular-softmax policy: its values at tokens, and the gradient in the logits of a loss on tokens.

A table has a row for every state: one per prompt (S prompts), or `nodes` per prompt if a response is an episode in a
tree. A token's arm is numbered across all rows of its prompt, 0 to nodes·K − 1. Shapes: R runs, n tokens per prompt.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from entrostat import PolicyStats, policy_stats
from entrostat.numbers.lazy import lazy
from entrostat.numbers.support import Support, truncated_logp

MOMENTS = ("s2", "s2l", "s2ll")


class Policy:
    """Softmax of finite logits (R, rows, K). Properties are computed when first used."""

    def __init__(self, logits: Tensor, temperature: Tensor | None = None) -> None:
        """temperature: T of the softmax of logits/T, (R, 1, 1); None for 1."""
        self.logits, self.temperature = logits, temperature
        self.shifted = logits - logits.amax(-1, keepdim=True)
        if temperature is not None:
            self.shifted = self.shifted / temperature
        self.weight = self.shifted.exp()
        self.total = self.weight.sum(-1, keepdim=True)
        self.log_total = self.total.log()

    @lazy
    def p(self) -> Tensor:
        """Probabilities π, (R, rows, K)."""
        return self.weight / self.total

    @lazy
    def logp(self) -> Tensor:
        """log π, (R, rows, K), nats."""
        return self.shifted - self.log_total

    @lazy
    def entropy(self) -> Tensor:
        """H of every row, (R, rows), nats."""
        return -(self.p * self.logp).sum(-1)

    @lazy
    def stats(self) -> PolicyStats:
        """All statistics of the rows."""
        return policy_stats(self.logits if self.temperature is None else self.shifted)

    def in_logits(self, gradient: Tensor) -> Tensor:
        """Return the gradient in the logits (R, rows, K) of one in logits/T."""
        return gradient if self.temperature is None else gradient / self.temperature


def per_prompt(table: Tensor, prompts: int) -> Tensor:
    """Return a table with the rows of each prompt joined: (R, rows, K) to (R, S, nodes·K)."""
    return table.reshape(table.shape[0], prompts, -1)


def per_token(x: Tensor, arm: Tensor, node: Tensor | None = None) -> Tensor:
    """Return the value of every token's row: x (R, rows), arm and node (R, S, n), result (R, S·n)."""
    if node is None:
        return x.unsqueeze(-1).expand(arm.shape).flatten(1)
    return per_prompt(x, arm.shape[1]).gather(-1, node).flatten(1)


def row_sum(x: Tensor, arm: Tensor, node: Tensor | None, rows: int) -> Tensor:
    """Return the sum of a per-token value (R, S·n) over the tokens of each row, (R, rows)."""
    each = x.reshape(arm.shape)
    if node is None:
        return each.sum(-1)
    runs, prompts, _ = arm.shape
    return each.new_zeros(runs, prompts, rows // prompts).scatter_add_(-1, node, each).flatten(1)


def token_logp(policy: Policy, arm: Tensor) -> Tensor:
    """Return log π of the arms (R, S, n), flat: (R, S·n)."""
    prompts = arm.shape[1]
    if prompts == policy.logits.shape[1]:  # a row for each prompt: its normaliser needs no table
        return (policy.shifted.gather(-1, arm) - policy.log_total).flatten(1)
    return per_prompt(policy.logp, prompts).gather(-1, arm).flatten(1)


def token_moments(policy: Policy, arm: Tensor, needs: Collection[str], node: Tensor | None = None) -> dict[str, Tensor]:
    """Return s2, s2l and s2ll, or only the needed ones among them, (R, S·n) each."""
    return {name: per_token(getattr(policy.stats, name), arm, node) for name in MOMENTS if name in needs}


def logit_gradient(
    policy: Policy, arm: Tensor, dlogp: Tensor, dentropy: Tensor | None, node: Tensor | None = None
) -> Tensor:
    """Return a loss's gradient in the logits, (R, rows, K), from its derivatives in log π and H of each token (R, S·n).

    ∂ log p_a/∂z = (e_a − p)/T and ∂H/∂z = −p(log p + H)/T; arm is (R, S, n).
    """
    rows = policy.logits
    pushed = torch.zeros_like(per_prompt(rows, arm.shape[1])).scatter_add_(-1, arm, dlogp.view(arm.shape)).view_as(rows)
    gradient = torch.addcmul(pushed, policy.weight, pushed.sum(-1, keepdim=True) / policy.total, value=-1)
    if dentropy is None:
        return policy.in_logits(gradient)
    bonus = row_sum(dentropy, arm, node, rows.shape[1]).unsqueeze(-1)
    return policy.in_logits(gradient - bonus * policy.p * (policy.logp + policy.entropy.unsqueeze(-1)))


def proxy_logp(policy: Policy, support: Support | None, arm: Tensor) -> Tensor:
    """Return log π of every token under the policy restricted to the support: arm (R, S, n), result (R, S·n)."""
    assert support is not None, "no part of the chain has a proxy"
    return per_prompt(truncated_logp(policy.logp, support), arm.shape[1]).gather(-1, arm).flatten(1)


def truncated(policy: Policy, support: Support) -> tuple[Tensor, Tensor]:
    """Return the log policy renormalised on the support, −inf outside, (R, rows, K), and its entropy (R, rows)."""
    logp = truncated_logp(policy.logp, support)
    p = logp.exp()
    return logp, -torch.where(p > 0, p * logp, 0.0).sum(-1)


def truncated_gradient(
    policy: Policy, support: Support, arm: Tensor, dentropy: Tensor, node: Tensor | None = None
) -> Tensor:
    """Return a loss's gradient in the logits, (R, rows, K), from its derivative in each token's truncated entropy.

    ∂H_S/∂z = −p_S(log p_S + H_S) on the support and 0 outside; arm is (R, S, n), dentropy (R, S·n).
    """
    logp, entropy = truncated(policy, support)
    p = logp.exp()
    slope = torch.where(p > 0, p * (logp + entropy.unsqueeze(-1)), 0.0)
    return policy.in_logits(-row_sum(dentropy, arm, node, p.shape[1]).unsqueeze(-1) * slope)
