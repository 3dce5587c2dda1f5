"""Cached tensors of numbers that are needed often."""

from functools import lru_cache

import torch
from torch import Tensor


def constant(x: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a number as a tensor (1,); do not write to it."""
    if torch.compiler.is_compiling():  # compiled code holds the number itself
        return torch.full((1,), x, dtype=dtype, device=device)
    return _made_once(x, dtype, device)


@lru_cache(maxsize=1024)
def _made_once(x: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # even if first needed in inference mode, because autograd may use it later
        return torch.tensor([x], dtype=dtype, device=device)
