"""Log-probability, entropy and collision moments of each token, in chunks of tokens.

    hidden X (N, D), weight W (V, D), targets y (N)
      chunk of tokens ─► logits (n, V) ─► logp, H, S2, S2L, S2LL (n)      forward
      the same logits again ─► dlogits ─► dX, dW                          backward, only rows with a coefficient ≠ 0

One chunk of logits exists at a time, so memory is n·V rather than N·V. Statistics are fp32 (float64 for float64 input).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

CHUNK_TOKENS = 4096
"""Tokens whose logits are held at once."""


class HeadStats(NamedTuple):
    """Statistics of p = softmax(W·x / temperature) for each token, (N,) each; nats where a logarithm is meant."""

    logp: Tensor
    """log p(y)."""
    entropy: Tensor
    """H = −Σ p log p."""
    s2: Tensor
    """Σ p². No gradient, like the two below."""
    s2l: Tensor
    """Σ p² log p."""
    s2ll: Tensor
    """Σ p² (log p)²."""


def head_stats(
    hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float = 1.0, chunk: int = CHUNK_TOKENS
) -> HeadStats:
    """Statistics of the tokens `targets` (N,) under the head `weight` (V, D) at hidden states (N, D).

    Differentiable in logp and entropy with respect to hidden and weight.
    Raises ValueError on shapes that do not fit, and on a temperature that is not positive.
    """
    if hidden.ndim != 2 or weight.ndim != 2 or hidden.shape[1] != weight.shape[1] or targets.shape != hidden.shape[:1]:
        raise ValueError(
            "head_stats takes hidden (N, D), weight (V, D), targets (N,); "
            f"got {tuple(hidden.shape)}, {tuple(weight.shape)}, {tuple(targets.shape)}"
        )
    if temperature <= 0:
        raise ValueError(f"head_stats needs a positive temperature; got {temperature}")
    return HeadStats(*_HeadStats.apply(hidden, weight, targets, temperature, chunk))


def _log_probs(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    """log p over the vocabulary, (n, V), at least fp32."""
    logits = hidden @ weight.T
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return torch.log_softmax(wide / temperature if temperature != 1.0 else wide, -1)


class _HeadStats(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float, chunk: int
    ) -> tuple[Tensor, ...]:
        dtype = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        out = hidden.new_empty(5, hidden.shape[0], dtype=dtype)
        for start in range(0, hidden.shape[0], chunk):
            rows = slice(start, start + chunk)
            logp = _log_probs(hidden[rows], weight, temperature)
            p = logp.exp()
            plogp = (p * logp).nan_to_num_(nan=0.0)  # 0·(−∞) where a logit is −∞
            out[0, rows] = logp.gather(1, targets[rows, None])[:, 0]
            out[1, rows] = -plogp.sum(1)
            out[2, rows] = torch.linalg.vecdot(p, p)
            out[3, rows] = torch.linalg.vecdot(p, plogp)
            out[4, rows] = torch.linalg.vecdot(plogp, plogp)
        ctx.save_for_backward(hidden, weight, targets, out[1])
        ctx.temperature, ctx.chunk = temperature, chunk
        stats = out.unbind()
        ctx.mark_non_differentiable(*stats[2:])
        return stats

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, targets, entropy = ctx.saved_tensors
        grad_logp, grad_entropy = grads[:2]
        live = ((grad_logp != 0) | (grad_entropy != 0)).nonzero()[:, 0]
        grad_hidden = torch.zeros_like(hidden) if ctx.needs_input_grad[0] else None
        grad_weight = torch.zeros_like(weight, dtype=entropy.dtype) if ctx.needs_input_grad[1] else None
        for rows in live.split(ctx.chunk):
            logp = _log_probs(hidden[rows], weight, ctx.temperature)
            p = logp.exp()
            # ∂lp/∂z = e_y − p and ∂H/∂z = −p(log p + H)
            g_lp, g_h = grad_logp[rows, None], grad_entropy[rows, None]
            dlogits = logp.nan_to_num_(neginf=0.0).add_(entropy[rows, None]).mul_(-g_h).sub_(g_lp).mul_(p)
            dlogits.scatter_add_(1, targets[rows, None], g_lp)
            dlogits = dlogits.div_(ctx.temperature)
            if grad_hidden is not None:
                grad_hidden[rows] = (dlogits.to(weight.dtype) @ weight).to(hidden.dtype)
            if grad_weight is not None:
                grad_weight += dlogits.T @ hidden[rows].to(dlogits.dtype)
        return grad_hidden, None if grad_weight is None else grad_weight.to(weight.dtype), None, None, None
