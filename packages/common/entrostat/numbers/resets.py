"""Resets of the reference policy to the present one, every so many rollout steps."""

from typing import Annotated

import torch
from torch import Tensor

from .per_run import as_state

ResetEvery = Annotated[int, "[0, inf)"]
"""Rollout steps between two resets, 0 for none; one number, or one per leading run."""


def is_whole(every: int | Tensor) -> Tensor:
    """Return True where a number of rollout steps is whole, bool (...,)."""
    return as_state(every).frac() == 0


def is_due(every: int | Tensor, step: int) -> Tensor:
    """Return True where the reference is reset before rollout step `step` (from 0), bool (...,): never at step 0."""
    period = as_state(every)
    return (period > 0) & (step > 0) & (torch.remainder(as_state(step), period.clamp(min=1)) == 0)
