"""Floating-point numbers as integers in the same order, which can be split into digits and joined with others."""

import torch
from torch import Tensor


def ordered_bits(x: Tensor) -> Tensor:
    """Map float64 to int64, or float32 to int32, so that the order is kept."""
    kind, last = (torch.int64, 63) if x.dtype == torch.float64 else (torch.int32, 31)
    bits = (x + 0.0).view(kind)  # adding zero turns −0 into +0, which compare equal
    return bits ^ ((bits >> last) & torch.iinfo(kind).max)


def from_ordered_bits(bits: Tensor) -> Tensor:
    """Return the numbers that `ordered_bits` mapped to these bits; −0 comes back as 0."""
    kind, last = (torch.float64, 63) if bits.dtype == torch.int64 else (torch.float32, 31)
    return (bits ^ ((bits >> last) & torch.iinfo(bits.dtype).max)).view(kind)
