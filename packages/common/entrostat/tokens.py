"""Input of a controller: numbers of every response token of one optimizer mini-batch.

Shapes: the last dimension is N tokens, flat and packed (never padded); leading dimensions are independent runs.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

IDS = ("seq_id", "group_id", "position", "turn_id")
"""Fields of integers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tokens:
    """Per-token numbers of the mini-batch on this rank, each (..., N); absent ones are None.

    A field may have fewer leading dimensions than `advantage` and is then shared by all runs.
    No field carries a gradient. Whole numbers that are no ids become floating-point numbers.

    Raises ValueError if a field does not broadcast to the shape of `advantage`.
    """

    logp: Tensor | None
    """log π(o_t) under the current policy (nats)."""
    old_logp: Tensor | None
    """log π_old(o_t) under the policy that made the rollout (nats)."""
    advantage: Tensor
    rollout_logp: Tensor | None = None
    """log π(o_t) as the rollout engine computed it (nats), with another implementation or older weights."""
    reward: Tensor | None = None
    """Reward of the token's response."""
    entropy: Tensor | None = None
    """Full-vocabulary entropy H of the current policy at the token's position (nats)."""
    old_entropy: Tensor | None = None
    """H at rollout time (nats)."""
    s2: Tensor | None = None
    """Σ_v p_v²."""
    s2l: Tensor | None = None
    """Σ_v p_v² log p_v."""
    s2ll: Tensor | None = None
    """Σ_v p_v² (log p_v)²."""
    truncated_entropy: Tensor | None = None
    """Entropy of the policy on the controller's `support` (nats), filled by the code that has the logits: of the
    current policy, or of the policy before the first update on the rollout."""
    ref_logp: Tensor | None = None
    """log π_ref(o_t) under a reference policy (nats)."""
    proxy_logp: Tensor | None = None
    """log π_old(o_t) with π_old restricted to the controller's `proxy`, at its temperature (nats); −inf outside; filled
    by the code that has the logits at rollout time."""
    seq_id: Tensor | None = None
    """Id of the response (integers, unique over all ranks)."""
    group_id: Tensor | None = None
    """Id of the prompt (integers, unique over all ranks)."""
    position: Tensor | None = None
    """Index of the token within its response, from 0."""
    turn_id: Tensor | None = None
    """Index of the token's turn within its response, from 0: a turn is an uninterrupted run of the policy's own tokens,
    between those of tools or the environment. All 0 if responses have a single turn."""

    def __post_init__(self) -> None:
        shape = self.advantage.shape
        if not shape:
            raise ValueError("Tokens.advantage needs at least one dimension, for the tokens")
        for name, value in [*self.__dict__.items()]:
            if value is None:
                continue
            if name not in IDS and not value.is_floating_point():
                like = self.old_logp if self.logp is None else self.logp
                exact = torch.float32 if like is None or not like.is_floating_point() else like.dtype
                object.__setattr__(self, name, value.to(exact))
            if value.shape == shape:
                continue
            if value.shape[-1:] != shape[-1:] or torch.broadcast_shapes(value.shape, shape) != shape:
                raise ValueError(
                    f"Tokens.{name} has shape {tuple(value.shape)}; expected {tuple(shape)} like advantage"
                )

    @property
    def size(self) -> int:
        """Number N of tokens on this rank."""
        return self.advantage.shape[-1]

    def get(self, name: str) -> Tensor:
        """Return the field `name`. Raises ValueError if it was not given."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"Tokens.{name} is needed but was not given")
        return value

    def select(self, index: Tensor) -> "Tokens":
        """Return the tokens at `index` (n,). Fields that hold one tensor, as before an update, hold one again."""
        index, taken = index.to(self.advantage.device), dict[int, Tensor]()
        chosen: dict[str, Any] = {}
        for name in Tokens.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None and id(value) not in taken:
                taken[id(value)] = value[..., index]
            chosen[name] = None if value is None else taken[id(value)]
        return Tokens(**chosen)
