"""Sums over groups of tokens or responses that share an integer id."""

from torch import Tensor


def segment_sum(x: Tensor, ids: Tensor) -> Tensor:
    """Sum of x (..., n) over elements with equal ids (n,) or (..., n), given back to every member: (..., n)."""
    index = ids.unique(return_inverse=True)[1].expand(x.shape)
    segments = int(index.max()) + 1 if index.numel() else 0
    return x.new_zeros(*x.shape[:-1], segments).scatter_add(-1, index, x).gather(-1, index)
