"""Numbers that are needed as tensors again and again, made once."""

from functools import lru_cache

import torch
from torch import Tensor


def constant(x: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number as a tensor (1,), not to be written to."""
    if torch.compiler.is_compiling():  # compiled code holds the number itself
        return torch.full((1,), x, dtype=dtype, device=device)
    return _made_once(x, dtype, device)


@lru_cache(maxsize=1024)
def _made_once(x: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # whoever asks first, gradients may pass through what it is multiplied with
        return torch.tensor([x], dtype=dtype, device=device)
