"""First-order entropy changes with shared weights, in all weights or only in the output layer.

    first_order    change of each token's entropy by a step of the weights
    influence      change of the entropy of all tokens together by one token's part of a step

    direction of the weights  ─► forward-mode differentiation of body and output layer ─► d log π, dH (N,)

The rest of the measured changes is curvature: the steps are too long for a first-order estimate.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call
from transformers import PreTrainedModel

from ..kernels import head_stats
from ..policy.policy import Policy
from ..sequences.batch import Batch
from ..sequences.layout import padded, padded_slices

OF_WEIGHTS = ("output layer", "all weights")
"""Names of the weights that change."""
ROWS = 256
"""Tokens per chunk of logits."""


def first_order(
    policy: Policy, batch: Batch, start: Sequence[Tensor], end: Sequence[Tensor], budget: int
) -> dict[str, Tensor]:
    """Return the first-order change of H of the N response tokens of `batch` by a step, by OF_WEIGHTS, (N,), in nats.

    Args:
        policy: policy with the model; its current weights are ignored.
        batch: N response tokens.
        start: parameters of the model before the step, in the model's order.
        end: parameters after the step.
        budget: tokens per forward pass.
    """
    step = [b - a for a, b in zip(start, end, strict=True)]
    head = step[_place_of_head(policy)]
    found = (slopes(policy, batch, start, body, head, budget).entropy for body in (None, step))
    return dict(zip(OF_WEIGHTS, found, strict=True))


def influence(policy: Policy, batch: Batch, weight: Tensor, budget: int) -> dict[str, Tensor]:
    """Return the change of ΣH over `batch` by each token's part of plain gradient descent, by OF_WEIGHTS, (N,) each.

    The unit is nats per unit of learning rate. A token's part is weight·∇ log π, so the change is
    ⟨weight·∇ log π, ∇ΣH⟩: weight times the derivative of log π along the gradient of ΣH, for all tokens at once.

    weight: factor of ∇ log π of each token, (N,).
    """
    at = [p.detach() for p in policy.model.parameters()]
    gradient, of_head = _gradient_of_entropy(policy, batch, budget)
    alone = slopes(policy, batch, at, None, of_head, budget).logp
    whole = slopes(policy, batch, at, gradient, gradient[_place_of_head(policy)], budget).logp
    return dict(zip(OF_WEIGHTS, (weight * alone, weight * whole), strict=True))


class Slopes(NamedTuple):
    """Directional derivatives for the response tokens, (N,) each."""

    logp: Tensor
    entropy: Tensor


@torch.no_grad()
def slopes(
    policy: Policy, batch: Batch, at: Sequence[Tensor], body: Sequence[Tensor] | None, head: Tensor, budget: int
) -> Slopes:
    """Return derivatives along a direction of the weights.

    Args:
        policy: policy with the model; its current weights are ignored.
        batch: N response tokens.
        at: parameters of the model at which derivatives are taken, in the model's order.
        body: direction of all parameters, except as the output layer; None if only the output layer changes.
        head: direction of the output layer's weight (V, D).
        budget: tokens per forward pass.
    """
    moves: Sequence[Tensor | None] = body or [None] * len(at)
    pairs = {id(p): (x, move) for p, x, move in zip(policy.model.parameters(), at, moves, strict=True)}
    out = Slopes(*torch.empty(2, int(batch.response_lengths.sum()), device=policy.head.device))
    with eager_attention(policy.model), forward_ad.dual_level():
        weights = {name: _dual(*pairs[id(p)]) for name, p in policy.body.named_parameters()}
        output = _dual(at[_place_of_head(policy)], head)
        for some in padded_slices(batch, torch.arange(len(batch)), budget):
            index = batch.response_index(some)
            targets = batch.targets(some).to(out.logp.device)
            states = _states(policy, weights, batch, some)
            rows = zip(states.split(ROWS), targets.split(ROWS), strict=True)
            parts = zip(*(_of_rows(policy, output, *some_rows) for some_rows in rows), strict=True)
            for x, part in zip(out, parts, strict=True):
                x[index.to(x.device)] = torch.cat(part)
    return out


def _dual(at: Tensor, along: Tensor | None) -> Tensor:
    return at if along is None else forward_ad.make_dual(at, along)


def _states(policy: Policy, weights: dict[str, Tensor], batch: Batch, sequences: Tensor) -> Tensor:
    """Return hidden states (n, D) that predict the response tokens of `sequences`, with these weights of the body."""
    made = padded(batch, sequences)
    ids, row, column = (x.to(policy.head.device) for x in (made.ids, made.row, made.column))
    return functional_call(policy.body, weights, (ids,), {"use_cache": False}).last_hidden_state[row, column]


def _of_rows(policy: Policy, weight: Tensor, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return d log π and dH (n,) from the output layer's weight (V, D) and hidden states (n, D) as dual numbers."""
    logits = (hidden * policy.output.scale @ weight.T).float()
    if cap := policy.output.softcap:
        logits = cap * torch.tanh(logits / cap)
    logp = torch.log_softmax(logits / policy.temperature, -1)
    of_targets, entropy = logp.gather(1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(-1)
    return forward_ad.unpack_dual(of_targets).tangent, forward_ad.unpack_dual(entropy).tangent


def _place_of_head(policy: Policy) -> int:
    """Return the index of the output layer's weight among the model's parameters."""
    return next(i for i, p in enumerate(policy.model.parameters()) if p is policy.head)


def _gradient_of_entropy(policy: Policy, batch: Batch, budget: int) -> tuple[list[Tensor], Tensor]:
    """Return ∇ΣH with respect to the model's parameters (0 if frozen), and to the weight (V, D) as output layer only.

    The second excludes the gradient through the input embeddings if both share the weight.
    """
    total, of_head = [torch.zeros_like(p) for p in policy.model.parameters()], torch.zeros_like(policy.head)
    trained = [(p, sum_) for p, sum_ in zip(policy.model.parameters(), total, strict=True) if p.requires_grad]
    weight = policy.head.detach().clone().requires_grad_()
    for some in padded_slices(batch, torch.arange(len(batch)), budget):
        hidden, targets = policy.states(batch, some, padded)
        entropy = policy.output(hidden, targets, policy.temperature).entropy
        scaled = hidden.detach() * policy.output.scale
        apart = head_stats(scaled, weight, targets, policy.temperature, softcap=policy.output.softcap).entropy
        of_head += torch.autograd.grad(apart.sum(), weight)[0]
        found = torch.autograd.grad(entropy.sum(), [p for p, _ in trained], allow_unused=True)
        for (_, sum_), part in zip(trained, found, strict=True):
            if part is not None:
                sum_ += part
    return total, of_head * policy.head.requires_grad


@contextmanager
def eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """Run the model with eager attention, which supports forward-mode differentiation."""
    own = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(own)
