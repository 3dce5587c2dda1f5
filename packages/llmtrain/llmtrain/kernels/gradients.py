"""Accumulated gradients of a pass over chunks."""

import torch
from torch import Tensor

from .projection import Projection


class Gradients:
    """Gradients of hidden (N, D), weight (V, D) and bias (V,), each if needed; sums over tokens are in `dtype`."""

    def __init__(self, hidden: Tensor, projection: Projection, needed: tuple[bool, ...], dtype: torch.dtype) -> None:
        weight, bias = projection.weight, projection.bias
        self.projection = projection
        self.hidden = torch.zeros_like(hidden) if needed[0] else None
        self.weight = torch.zeros_like(weight, dtype=dtype) if needed[1] else None
        self.bias = torch.zeros_like(bias, dtype=dtype) if bias is not None and needed[2] else None

    def add(self, dlogits: Tensor, hidden: Tensor, rows: Tensor) -> None:
        """Add the contribution of a chunk with dlogits (n, V) and hidden (n, D), at token indices `rows`."""
        d_hidden = self.projection.pull_back(dlogits, hidden, self.weight, self.bias, self.hidden is not None)
        if self.hidden is not None and d_hidden is not None:
            self.hidden[rows] = d_hidden.to(self.hidden.dtype)

    def out(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the gradients of hidden, weight and bias, each in its input's dtype, or None."""
        return (
            self.hidden,
            None if self.weight is None else self.weight.to(self.projection.weight.dtype),
            None if self.bias is None or self.projection.bias is None else self.bias.to(self.projection.bias.dtype),
        )
