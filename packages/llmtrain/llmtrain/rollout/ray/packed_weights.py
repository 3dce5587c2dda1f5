"""Weights as bytes, type and shape by name: an object store keeps them without a copy per reader."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ..rollout_engine import Weights


def pack(weights: Weights) -> dict[str, Any]:
    """Return the weights packed, on the CPU."""
    return {name: (w.detach().cpu().flatten().view(torch.uint8).numpy(), w.dtype, w.shape) for name, w in weights}


def unpack(packed: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights packed by `pack`, each as a copy."""
    for name, (data, dtype, shape) in packed.items():
        yield name, torch.from_numpy(data.copy()).view(dtype).view(shape)
