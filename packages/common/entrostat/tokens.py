"""Input of a controller: numbers of every response token of one optimizer mini-batch.

Shapes: the last dimension is N tokens, flat and packed (never padded); leading dimensions are independent runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

IDS = {
    "seq_id": "number the responses",
    "group_id": "number the prompts",
    "position": "count the tokens of each response",
    "turn_id": "count the turns of each response",
}
"""Fields of integers, each with what makes it."""
ROUNDED = 0.05
"""Largest distance from 0, on its wrong side, that rounding may cause in the mean entropy or the log-probabilities of a
policy that is certain (nats)."""
LONG = 4.0
"""Mean length of runs of tokens with log π = 0, relative to that in random order, at which they look like padding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tokens:
    """Per-token numbers of the mini-batch on this rank, each (..., N); absent ones are None.

    A field may have fewer leading dimensions than `advantage` and is then shared by all runs.
    No field carries a gradient: it is cut off. Whole numbers that are no ids become floating-point numbers.

    Raises TypeError if a field is no tensor, or an id no integer, and ValueError if a field does not broadcast to the
    shape of `advantage`.
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
        if not isinstance(self.advantage, Tensor):
            raise TypeError(_complaint("advantage", self.advantage))
        shape = self.advantage.shape
        if not shape:
            raise ValueError("Tokens.advantage needs at least one dimension, for the tokens")
        cut: dict[int, Tensor] = {}
        for name, value in [*self.__dict__.items()]:
            if value is None:
                continue
            if not isinstance(value, Tensor):
                raise TypeError(_complaint(name, value))
            if value.requires_grad:  # else old_logp=logp leaves no gradient
                value = cut.setdefault(id(value), value.detach())
                object.__setattr__(self, name, value)
            if value.is_floating_point() or value.is_complex():
                if name in IDS:
                    raise TypeError(_complaint(name, value))
            elif name in ("logp", "old_logp"):
                raise TypeError(f"Tokens.{name} must be floating-point log-probabilities (nats), not {value.dtype}")
            elif name not in IDS:
                like = self.old_logp if self.logp is None else self.logp
                exact = torch.float32 if like is None or not like.is_floating_point() else like.dtype
                object.__setattr__(self, name, value.to(exact))
            if value.shape == shape:
                continue
            if value.shape[-1:] != shape[-1:] or not expands(value.shape, shape):
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


def expands(shape: Sequence[int], to: Sequence[int]) -> bool:
    """Return True if a tensor of this shape can be expanded to the other."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


def _complaint(name: str, value: Any) -> str:
    """Return why a field cannot have this value."""
    if name not in IDS:
        return f"Tokens.{name} must be a tensor, not {type(value).__name__}: torch.as_tensor makes one"
    what = f"of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
    return f"Tokens.{name} must be a tensor of integers, not {what}: {IDS[name]}, from 0"


def check_logp(tokens: Tokens) -> str:
    """Return a line if some tokens look like padding; "" otherwise. On a GPU this waits for the device.

    Raises ValueError if `logp` and `old_logp`, both or one, hold probabilities, losses or a filler above 0, and if an
    entropy is below 0.
    """
    entropy = tokens.entropy
    if entropy is not None and entropy.numel() and (lowest := float(entropy.nan_to_num(nan=0.0).amin())) < -ROUNDED:
        raise ValueError(f"Tokens.entropy is {lowest:.3g} nats for a token, below 0: pass H, not −H")
    held = {name: x for name in ("logp", "old_logp") if (x := getattr(tokens, name)) is not None and x.numel()}
    if held and all(map(_are_probabilities, held.values())):
        raise ValueError("Tokens.logp is between 0 and 1: pass log-probabilities (nats), which are 0 or less")
    for name, x in held.items():
        if (highest := float(x.amax())) > ROUNDED:
            raise ValueError(
                f"Tokens.{name} is {highest:.3g} for a token, and a log-probability (nats) is 0 or less: leave padding "
                "out, as in logp[mask], and pass log π, not a loss"
            )
    share = _share_in_runs(torch.stack([x.expand(tokens.advantage.shape) == 0 for x in held.values()]).all(0))
    if not share:
        return ""
    return (
        f"{share:.0%} of the tokens have a log-probability of exactly 0, one after another: if they are padding, leave "
        "them out, as in logp[mask]; they count in every mean"
    )


def _are_probabilities(x: Tensor) -> bool:
    """Return True if numbers differ and lie from 0 to 1; those that rounding puts above 0 are close to it."""
    low, high = (float(each) for each in x.aminmax())
    return 0 < low < high <= 1 and high > ROUNDED


def _share_in_runs(certain: Tensor) -> float:
    """Return the share of the tokens in a mask (..., N) that stand one after another; 0 if most stand between others.

    The tokens that a policy is certain of stand between others, and padding does not.
    """
    count, size = int(certain.sum()), certain.numel()
    if not 0 < count < size:
        return 0.0
    runs = int((certain[..., :-1] & ~certain[..., 1:]).sum() + certain[..., -1].sum())
    return count / size if count / runs >= LONG * size / (size - count) else 0.0
