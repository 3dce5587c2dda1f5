"""Policies restricted to their most likely actions: a loss on their entropies, and their statistics, in chunks.

Sorting the logits of a chunk takes several times their memory, so chunks are smaller here.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from entrostat.numbers.support import Support, entropy_of, truncated_entropy, truncated_logp

from .gradients import Gradients
from .projection import Projection, chunk_tokens, of_rows

SHARE = 8
"""Factor by which chunks are smaller than elsewhere."""


class RestrictedStats(NamedTuple):
    """Statistics of each token under the restricted policy, (N,), nats."""

    logp: Tensor
    """Log-probability of the target; −inf if it is outside the support."""
    entropy: Tensor


def truncated_loss(
    hidden: Tensor,
    weight: Tensor,
    coefficient: Tensor,
    support: Support,
    temperature: float | Tensor = 1.0,
    *,
    bias: Tensor | None = None,
    softcap: float | None = None,
    chunk: int | None = None,
) -> Tensor:
    """Return Σ coefficient·H_S over tokens (scalar); H_S is the entropy of the policy restricted to the support.

    coefficient: (N,); tokens with 0 are skipped. Other arguments are as in `head_stats`.
    """
    chunk = chunk or _chunk(weight)
    return _TruncatedLoss.apply(hidden, weight, bias, coefficient, temperature, support, softcap, chunk)


@torch.no_grad()
def restricted_stats(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    support: Support,
    temperature: float | Tensor = 1.0,
    *,
    bias: Tensor | None = None,
    softcap: float | None = None,
    chunk: int | None = None,
) -> RestrictedStats:
    """Return statistics of the policy restricted to the support and renormalised, without gradient.

    Arguments are as in `head_stats`.
    """
    projection, out = Projection(weight, bias, softcap), []
    for rows in torch.arange(len(targets), device=targets.device).split(chunk or _chunk(weight)):
        logp = projection.logits(hidden[rows], of_rows(temperature, rows)).log_softmax(-1)
        inside = truncated_logp(logp, support)
        out.append((inside.gather(-1, targets[rows, None])[:, 0], entropy_of(inside)))
    return RestrictedStats(*map(torch.cat, zip(*out, strict=True)))


def _chunk(weight: Tensor) -> int:
    return max(1, chunk_tokens(weight.shape[0], weight.device) // SHARE)


class _TruncatedLoss(torch.autograd.Function):
    """Autograd function that computes gradients in the forward pass, while a chunk's logits exist."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        coefficient: Tensor,
        temperature: float | Tensor,
        support: Support,
        softcap: float | None,
        chunk: int,
    ) -> Tensor:
        projection = Projection(weight, bias, softcap)
        gradients = Gradients(hidden, projection, ctx.needs_input_grad, coefficient.dtype)
        total = coefficient.new_zeros(())
        for rows in coefficient.nonzero()[:, 0].split(chunk):
            heat = of_rows(temperature, rows)
            logits = projection.logits(hidden[rows], heat).requires_grad_()
            with torch.enable_grad():
                part = (coefficient[rows] * truncated_entropy(logits, support)).sum()
            (slope,) = torch.autograd.grad(part, logits)
            total += part
            gradients.add(slope / (heat[:, None] if isinstance(heat, Tensor) else heat), hidden[rows], rows)
        ctx.save_for_backward(*gradients.out())
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        return (*(None if x is None else x * d_loss.to(x.dtype) for x in ctx.saved_tensors), *(None,) * 5)
