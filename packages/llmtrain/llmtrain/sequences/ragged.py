"""Segments of different lengths, one after another in a flat tensor."""

import torch
from torch import Tensor


def starts(lengths: Tensor) -> Tensor:
    """Return the first index of each of consecutive segments of the given lengths."""
    return lengths.cumsum(0) - lengths


def ranges(first: Tensor, lengths: Tensor) -> Tensor:
    """Return the concatenation over i of first[i], first[i]+1, …, first[i]+lengths[i]−1."""
    return torch.repeat_interleave(first - starts(lengths), lengths) + torch.arange(int(lengths.sum()))
