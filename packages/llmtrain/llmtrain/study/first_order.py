"""First order in what a step did to the weights: the derivative of each token's entropy along that step.

    start, end − start  ─► forward-mode differentiation of body and output layer ─► dH (N,)

Unlike the estimators of entrostat this knows that tokens share their weights. What it leaves of the measured change is
curvature: a step too long to be told by how it sets out.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call
from transformers import PreTrainedModel

from ..batch import Batch
from ..layout import padded, padded_slices
from ..policy import Policy

OF_THE_STEP = ("output layer", "all weights")
"""Which weights move."""
ROWS = 256
"""Tokens whose logits are held at once."""


@torch.no_grad()
def first_order(
    policy: Policy, batch: Batch, start: Sequence[Tensor], end: Sequence[Tensor], budget: int
) -> dict[str, Tensor]:
    """First-order change of H of the response tokens of `batch`, by OF_THE_STEP, (N,) each in nats.

    Args:
        policy: its own weights are not looked at.
        batch: N response tokens.
        start: the parameters of its model before the step, in the model's order.
        end: after it.
        budget: tokens that go through the model at once.
    """
    steps = {id(p): (a, b - a) for p, a, b in zip(policy.model.parameters(), start, end, strict=True)}
    head = steps[id(policy.head)]
    body = {name: steps[id(p)] for name, p in policy.body.named_parameters()}
    found = {name: torch.empty(int(batch.response_lengths.sum()), device=policy.head.device) for name in OF_THE_STEP}
    with eager_attention(policy.model), forward_ad.dual_level():
        resting = {name: weight for name, (weight, _) in body.items()}
        moving = {name: forward_ad.make_dual(*pair) for name, pair in body.items()}
        output = forward_ad.make_dual(*head)
        for some in padded_slices(batch, torch.arange(len(batch)), budget):
            index = batch.response_index(some).to(policy.head.device)
            for name, weights in zip(OF_THE_STEP, (resting, moving), strict=True):
                states = _states(policy, weights, batch, some)
                slopes = [_slope(policy, output, rows) for rows in states.split(ROWS)]
                found[name][index] = torch.cat(slopes)
    return found


def _states(policy: Policy, weights: dict[str, Tensor], batch: Batch, sequences: Tensor) -> Tensor:
    """Hidden states (n, D) that predict the response tokens of `sequences`, by these weights of the body."""
    ids, _, _, row, column = (x if x is None else x.to(policy.head.device) for x in padded(batch, sequences))
    return functional_call(policy.body, weights, (ids,), {"use_cache": False}).last_hidden_state[row, column]


def _slope(policy: Policy, weight: Tensor, hidden: Tensor) -> Tensor:
    """dH (n,) of the dual numbers that the output layer's weight (V, D) and hidden states (n, D) are."""
    logits = (hidden * policy.output.scale @ weight.T).float()
    if cap := policy.output.softcap:
        logits = cap * torch.tanh(logits / cap)
    logp = torch.log_softmax(logits / policy.temperature, -1)
    slope = forward_ad.unpack_dual(-(logp.exp() * logp).sum(-1)).tangent
    assert slope is not None
    return slope


@contextmanager
def eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """Attention by plain matrix products, which can be differentiated forward."""
    own = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(own)
