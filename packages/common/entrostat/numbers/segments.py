"""Sums over tokens or responses that share an integer id. All of a segment must be on one rank."""

import numpy as np
import torch
from torch import Tensor

from .lazy import lazy
from .ordered_bits import from_ordered_bits, ordered_bits

HALF = 1 << 31
"""Half the number of values of 32 bits."""


class Segments:
    """Partition of n elements into K segments that share an id: `ids` integers (n,) or (..., n), both in any order.

    Computed once, then used for any number of sums. Fast if equal ids are adjacent, as in packed sequences.
    """

    def __init__(self, ids: Tensor) -> None:
        values, index, sizes = ids.unique_consecutive(return_inverse=True, return_counts=True)
        apart = not bool((values.diff() > 0).all())
        if apart:
            values, merged = values.unique(return_inverse=True)
            index = merged[index]
        self.index = index
        """Segment of each element, shaped like ids."""
        self.count = len(values)
        """Number K of segments."""
        even = ids.ndim == 1 and self.count > 0 and not apart and bool((sizes == sizes[0]).all())
        self.width = ids.numel() // self.count if even else None
        """Elements of each segment, if all have the same number and their elements are adjacent; else None."""

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum of x (..., n) over each segment: (..., K)."""
        if self.width is not None:
            return x.expand(*x.shape[:-1], len(self.index)).unflatten(-1, (self.count, self.width)).sum(-1)
        shape = torch.broadcast_shapes(x.shape, self.index.shape)
        return x.new_zeros(*shape[:-1], self.count).scatter_add(-1, self.index.expand(shape), x.expand(shape))

    @lazy
    def size(self) -> Tensor:
        """Elements of each segment, int64 (K,), or (..., K) if the ids differ between runs."""
        return self.sum(torch.ones_like(self.index))

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of x (..., n) over each segment: (..., K). A segment without elements in a run has mean 0."""
        return self.sum(x) / self.size.clamp(min=1)

    def spread(self, table: Tensor) -> Tensor:
        """Return for every element the table entry of its segment: table (..., K), result (..., n)."""
        if self.width is not None:
            return table.unsqueeze(-1).expand(*table.shape, self.width).flatten(-2)
        if self.index.ndim == table.ndim == 1:
            return table.index_select(0, self.index)  # half the time of gather
        leading = torch.broadcast_shapes(table.shape[:-1], self.index.shape[:-1])
        index = self.index.expand(*leading, self.index.shape[-1])
        return table.expand(*leading, table.shape[-1]).gather(-1, index)

    def pick(self, x: Tensor) -> Tensor:
        """Return the value of x (..., n) at one element of each segment, (..., K)."""
        if self.width is not None:
            return x.expand(*x.shape[:-1], len(self.index)).unflatten(-1, (self.count, self.width))[..., 0]
        shape = torch.broadcast_shapes(x.shape, self.index.shape)
        return x.new_zeros(*shape[:-1], self.count).scatter(-1, self.index.expand(shape), x.expand(shape))


def as_segments(ids: Tensor | Segments) -> Segments:
    """Return the segments of `ids`, or `ids` itself if it is a Segments object."""
    return ids if isinstance(ids, Segments) else Segments(ids)


def rank_within(x: Tensor, segments: Segments) -> Tensor:
    """Return the rank of each x (..., n) in its segment, ascending from 0; ties share their mean rank: (..., n)."""
    if not x.shape[-1]:
        return x
    order, starts = ascending(x, segments)
    value, segment = x.gather(-1, order), segments.index.expand(x.shape).gather(-1, order)
    changes = (value[..., 1:] != value[..., :-1]) | (segment[..., 1:] != segment[..., :-1])
    equal = Segments(torch.nn.functional.pad(changes, (1, 0)).long().cumsum(-1))
    place = torch.arange(x.shape[-1], device=x.device, dtype=torch.float64).expand(x.shape)
    rank = equal.spread(equal.mean(place)) - starts.gather(-1, segment)
    return torch.zeros_like(rank).scatter(-1, order, rank).to(x.dtype)


def quantile_within(x: Tensor, segments: Segments, share: float) -> Tensor:
    """Return each segment's quantile (..., K): its smallest x that at least `share` of its x (..., n) do not exceed."""
    # 0.55·20 must give 11 and 0.6·25 must give 15 despite rounding, for which float32 is too coarse
    place = (segments.size.double() * share - 1e-9).ceil().long().clamp(min=1) - 1
    last = max(x.shape[-1] - 1, 0)
    if x.dtype == torch.float64:  # does not fit into 64 bits together with the segment
        order, starts = ascending(x, segments)
        return x.gather(-1, order.gather(-1, (starts + place).clamp(max=last)))
    keys = _sorted((segments.index << 32) + ordered_bits(x.float()) + HALF)
    starts = (segments.size.cumsum(-1) - segments.size).expand(*x.shape[:-1], segments.count)
    bits = keys.gather(-1, (starts + place).clamp(max=last)) % (2 * HALF) - HALF
    return from_ordered_bits(bits.int()).to(x.dtype)


def _sorted(x: Tensor) -> Tensor:
    """Return x (..., n) sorted in ascending order. On a CPU NumPy takes a tenth of torch's time."""
    return torch.from_numpy(np.sort(x.numpy())) if x.device.type == "cpu" else x.sort(-1).values


def ascending(x: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """Return the order of x (..., n) by segment, then by value, and the start of each segment in it, (..., K)."""
    ids = segments.index.expand(x.shape)
    by_value = x.argsort(stable=True, dim=-1)
    order = by_value.gather(-1, ids.gather(-1, by_value).argsort(stable=True, dim=-1))
    starts = segments.size.cumsum(-1) - segments.size
    return order, starts.expand(*x.shape[:-1], segments.count)
