"""Numbers with one value for each of many runs side by side: as columns beside tokens, as states and as readings."""

from functools import lru_cache

import torch
from torch import Tensor


def column(x: float | Tensor, like: Tensor) -> Tensor:
    """Return a hyperparameter or state, () or (runs…,), as (…, 1) to broadcast with tokens (runs…, N), in their dtype.

    Do not write to the result: the tensor of a number is cached.
    """
    if isinstance(x, Tensor):
        return x.to(device=like.device, dtype=like.dtype).unsqueeze(-1)
    return constant(x, like.dtype, like.device)


def as_state(value: float | Tensor) -> Tensor:
    """Return a number of the control loop as float64, so that small steps are not lost."""
    return torch.as_tensor(value, dtype=torch.float64)


LARGEST_READING = 1e6
"""Bound of a measurement (nats): that of a sequence of 70,000 tokens over a million words is below."""


def reading(value: float | Tensor) -> Tensor:
    """Return a measurement for a control loop: float64, NaN where it is not finite or no entropy can be so large."""
    measured = as_state(value)
    return torch.where(measured.abs() < LARGEST_READING, measured, torch.nan)


as_reading = reading
"""Its name until version 0.2."""


def constant(x: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a number as a tensor (1,); do not write to it."""
    if torch.compiler.is_compiling():  # compiled code holds the number itself
        return torch.full((1,), x, dtype=dtype, device=device)
    return _made_once(x, dtype, device)


@lru_cache(maxsize=1024)
def _made_once(x: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # even if first needed in inference mode, because autograd may use it later
        return torch.tensor([x], dtype=dtype, device=device)
