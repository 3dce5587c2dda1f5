"""Advantages of a group of responses to one prompt.

Every function takes `reward` (..., n), one number a response, and `group_id` (n,) or (..., n), integers that say which
responses answer the same prompt, and returns (..., n). Leading dimensions are independent runs.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .segments import segment_sum

Advantage = Callable[[Tensor, Tensor], Tensor]


def _centred(reward: Tensor, group_id: Tensor) -> tuple[Tensor, Tensor]:
    """R − group mean, and the group size, each (..., n)."""
    size = segment_sum(torch.ones_like(reward), group_id)
    return reward - segment_sum(reward, group_id) / size, size


def grpo(reward: Tensor, group_id: Tensor) -> Tensor:
    """(R − mean) / (std + 1e-6) with the unbiased standard deviation (GRPO). A group of one has advantage 0."""
    centred, size = _centred(reward, group_id)
    variance = segment_sum(centred**2, group_id) / (size - 1).clamp(min=1)
    return centred / (variance.sqrt() + 1e-6)


def dr_grpo(reward: Tensor, group_id: Tensor) -> Tensor:
    """R − mean, no division by the standard deviation (Dr. GRPO)."""
    return _centred(reward, group_id)[0]


def rloo(reward: Tensor, group_id: Tensor) -> Tensor:
    """R − mean of the other members (RLOO). A group of one has advantage 0."""
    centred, size = _centred(reward, group_id)
    return centred * size / (size - 1).clamp(min=1)


ADVANTAGES: dict[str, Advantage] = {"grpo": grpo, "dr_grpo": dr_grpo, "rloo": rloo}


def get_advantage(name: str) -> Advantage:
    """The advantage function called `name`; ValueError lists the names there are."""
    if name not in ADVANTAGES:
        raise ValueError(f"unknown advantage {name!r}; choose from {', '.join(ADVANTAGES)}")
    return ADVANTAGES[name]
