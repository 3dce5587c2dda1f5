"""Plans and gradients of a chain over parts of a sample batch.

gradient(controller, batch, part)              ∇ loss in the weight of the policy, over these tokens
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..chaining import Chain
from ..numbers.reduce import LocalReduce
from ..numbers.support import truncated_entropy
from ..plan import Plan
from ..sample_batch import Ragged


def plan_of(controller: Chain, batch: Ragged, part: Tensor, reduce: LocalReduce | None = None) -> Plan:
    """Return the plan for the tokens `part` (n,) of this rank."""
    tokens, support = batch.tokens.select(part), controller.support
    if support is not None:
        tokens = replace(tokens, truncated_entropy=truncated_entropy(batch.features[part] @ batch.weight, support))
    return controller.plan(tokens, reduce, seed=3, step=9)


def gradient(
    controller: Chain,
    batch: Ragged,
    part: Tensor,
    cut: Sequence[Tensor] | None = None,
    reduce: LocalReduce | None = None,
) -> Tensor:
    """Return the gradient of the loss in the weight of the policy, (D, V), over the tokens `part` (n,) of this rank.

    cut: indices into `part` of each micro-batch; one micro-batch by default.
    """
    plan, support = plan_of(controller, batch, part, reduce), controller.support
    weight = batch.weight.clone().requires_grad_()
    for index in cut or [torch.arange(len(part))]:
        logits = batch.features[part[index]] @ weight
        logp = logits.log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        chosen = logp.gather(-1, batch.action[part[index], None])[:, 0]
        truncated = None if support is None else truncated_entropy(logits, support)
        plan.loss(chosen, entropy, index, truncated_entropy=truncated).backward()
    return torch.zeros_like(weight) if weight.grad is None else weight.grad
