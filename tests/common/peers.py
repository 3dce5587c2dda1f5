"""Loss and gradient of other libraries' policy losses and of ours, on the same padded mini-batch."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from entrostat import Tokens, make
from entrostat.integrations.packing import pack

ROWS, LENGTH = 12, 9


def padded(seed: int = 0, moved: float = 0.5) -> dict[str, Tensor]:
    """Return responses of random lengths, (ROWS, LENGTH), whose log π has `moved` since the rollout; float64."""
    g = torch.Generator().manual_seed(seed)
    old = -3 * torch.rand(ROWS, LENGTH, generator=g, dtype=torch.float64) ** 2
    drift = moved * torch.randn(ROWS, LENGTH, generator=g, dtype=torch.float64)
    lengths = torch.randint(1, LENGTH + 1, (ROWS, 1), generator=g)
    return {
        "old_log_prob": old,
        "log_prob": (old + drift).clamp(max=-1e-3),
        "advantages": torch.randn(ROWS, 1, generator=g, dtype=torch.float64).expand(ROWS, LENGTH),
        "response_mask": torch.arange(LENGTH) < lengths,
    }


def tokens_of(batch: dict[str, Tensor], **more: Tensor) -> Tokens:
    """Return the tokens of a padded mini-batch, packed; `more` are other fields, (ROWS, LENGTH) or (ROWS,)."""
    rows = torch.arange(ROWS)
    fields = {"logp": batch["log_prob"], "old_logp": batch["old_log_prob"], "advantage": batch["advantages"]}
    return Tokens(**pack(batch["response_mask"], {**fields, "seq_id": rows, **more}))


def with_gradient(loss: Callable[[Tensor], Tensor], batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the loss of log π (ROWS, LENGTH) and its gradient at the responses' tokens (N,)."""
    logp = batch["log_prob"].clone().requires_grad_()
    value = loss(logp)
    value.backward()
    assert logp.grad is not None
    return value.detach(), logp.grad[batch["response_mask"]]


def ours(spec: str, batch: dict[str, Tensor], **settings: Any) -> tuple[Tensor, Tensor]:
    """Return the loss and the gradient of a controller."""
    plan = make(spec, **settings).plan(tokens_of(batch))
    return with_gradient(lambda logp: plan.loss(logp[batch["response_mask"]]), batch)


def verls(name: str, batch: dict[str, Tensor], mode: str = "token-mean", **config: Any) -> tuple[Tensor, Tensor]:
    """Return the loss and the gradient of verl's policy loss of this name, with these settings of the actor."""
    reason = "pip install --no-deps -c constraints.txt verl"
    core_algos = pytest.importorskip("verl.trainer.ppo.core_algos", reason=reason)
    actor = SimpleNamespace(global_batch_info={}, get=lambda key, default=None: config.get(key, default), **config)
    rest = {key: value for key, value in batch.items() if key != "log_prob"}
    peer = core_algos.POLICY_LOSS_REGISTRY[name]
    return with_gradient(lambda logp: peer(log_prob=logp, **rest, loss_agg_mode=mode, config=actor)[0], batch)
