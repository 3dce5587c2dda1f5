"""Alternatives to the fused head, all with the same two functions, for comparing time, memory and error.

    statistics   (logp, H), (N,) each, without gradient; H is None if the peer does not compute it
    loss         a scalar with a backward pass

Liger-Kernel and Cut Cross-Entropy are imported when used, so ImportError means that the package is not installed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from entrostat import Plan

from .head import head_loss, head_stats
from .projection import chunk_tokens

SEQUENCE = 1024
"""Tokens of a response, for peers that take sequences."""


@dataclass(frozen=True)
class Peer:
    """Method to compute a loss from hidden (N, D), weight (V, D), targets (N,) and a plan."""

    loss: Callable[[Tensor, Tensor, Tensor, Plan], Tensor]
    statistics: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor | None]] | None = None
    """Function for logp and H; None if the peer has none, or has the same as another peer."""
    exact: bool = True
    """True if the loss is the plan's; otherwise it is the peer's own loss, of equal cost."""


def dense_logits(hidden: Tensor, weight: Tensor) -> Tensor:
    """Return log p of every token, (N, V), in plain torch."""
    return torch.log_softmax((hidden @ weight.T).float() if hidden.dtype == torch.bfloat16 else hidden @ weight.T, -1)


def dense_statistics(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    logp = dense_logits(hidden, weight)
    return logp.gather(1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(-1)


def dense_loss(hidden: Tensor, weight: Tensor, targets: Tensor, plan: Plan) -> Tensor:
    if plan.entropy_coef is not None:
        return plan.loss(*dense_statistics(hidden, weight, targets))
    return plan.loss(dense_logits(hidden, weight).gather(1, targets[:, None])[:, 0])


def dense() -> Peer:
    """Return plain torch with all logits at once."""
    return Peer(dense_loss, dense_statistics)


def compiled() -> Peer:
    return Peer(torch.compile(dense_loss), torch.compile(dense_statistics))


def head(mode: str) -> Callable[[], Peer]:
    """Return a factory of the fused head in one of its modes."""
    return lambda: Peer(
        lambda hidden, weight, targets, plan: head_loss(hidden, weight, targets, plan, mode=mode)[0],
        (lambda hidden, weight, targets: head_stats(hidden, weight, targets)[:2]) if mode == "fused" else None,
    )


def liger_cross_entropy() -> Peer:
    """Return Liger's cross entropy with gradients computed in the forward pass; no token log-probabilities, no H."""
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    cross_entropy = LigerFusedLinearCrossEntropyLoss()
    return Peer(lambda hidden, weight, targets, plan: cross_entropy(weight, hidden, targets), exact=False)


def liger_ppo() -> Peer:
    """Return Liger's clipped surrogate over responses of 1,024 tokens with one advantage each; no entropy."""
    from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss

    surrogate = LigerFusedLinearGRPOLoss(beta=0.0, use_ref_model=False, compiled=torch.cuda.is_available())

    def loss(hidden: Tensor, weight: Tensor, targets: Tensor, plan: Plan) -> Tensor:
        length = min(SEQUENCE, len(targets))
        ids = targets.view(-1, length)
        old = None if plan.old_logp is None else plan.old_logp.expand(len(targets)).view(-1, length)
        states, advantage = hidden.view(*ids.shape, -1), plan.advantage.view(-1, length)[:, 0]
        return surrogate(states, weight, ids, torch.ones_like(ids), advantage, old_per_token_logps=old)[0]

    return Peer(loss, exact=False)


def cut_cross_entropy() -> Peer:
    """Return Cut Cross-Entropy: log-probabilities without stored logits; no entropy. Its gradient drops small p."""
    from cut_cross_entropy import linear_cross_entropy

    def logp(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        return -linear_cross_entropy(hidden, weight, targets, reduction="none").float()

    return Peer(
        lambda hidden, weight, targets, plan: plan.loss(logp(hidden, weight, targets)),
        lambda hidden, weight, targets: (logp(hidden, weight, targets), None),
    )


def matmuls() -> Peer:
    """Return the lower bound on time: only the three matrix products of logits and gradients, in the head's chunks."""

    def loss(hidden: Tensor, weight: Tensor, targets: Tensor, plan: Plan) -> Tensor:
        return _Matmuls.apply(hidden, weight)

    def statistics(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, None]:
        for rows in hidden.split(chunk_tokens(weight.shape[0], weight.device)):
            torch.mm(rows, weight.T)
        return targets, None

    return Peer(loss, statistics, exact=False)


class _Matmuls(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor) -> Tensor:
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for rows in torch.arange(len(hidden)).split(chunk_tokens(weight.shape[0], weight.device)):
            some = slice(int(rows[0]), int(rows[-1]) + 1)
            logits = hidden[some] @ weight.T
            torch.mm(logits, weight, out=d_hidden[some])
            d_weight.addmm_(logits.T, hidden[some])
        ctx.gradients = d_hidden, d_weight
        return hidden.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.gradients


PEERS: dict[str, Callable[[], Peer]] = {
    "dense torch": dense,
    "dense, torch.compile": compiled,
    "Liger fused linear cross entropy": liger_cross_entropy,
    "Liger fused linear PPO": liger_ppo,
    "Cut Cross-Entropy": cut_cross_entropy,
    "fused": head("fused"),
    "recompute": head("recompute"),
    "stash": head("stash"),
    "matmuls alone": matmuls,
}
CPU_PEERS = ("dense torch", "Liger fused linear PPO", "fused", "recompute", "matmuls alone")
"""Peers that are timed on a CPU: the others need CUDA, or as much memory as dense torch."""
WITHOUT_ENTROPY = ("Liger fused linear cross entropy", "Liger fused linear PPO", "Cut Cross-Entropy")
"""Peers whose loss cannot have an entropy bonus."""
