"""Tensors on the CPU that say they are on CUDA, so that the code for CUDA runs: Triton's interpreter, cuBLAS's rules.

What is written by hand here are the products with `out_dtype`, which a CPU does not have, and what they refuse.
"""

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class LikeCuda(Tensor):
    is_cuda = property(lambda self: True)  # type: ignore[assignment]


def like_cuda(x: Tensor) -> Tensor:
    """The same numbers, as a leaf of its own."""
    return x.detach().clone().as_subclass(LikeCuda).requires_grad_(x.requires_grad)


class CudaProducts(TorchDispatchMode):
    """A context in which torch.mm and torch.addmm take `out_dtype`; `calls` has their names, dtypes and out_dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, torch.dtype, torch.dtype]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in (torch.ops.aten.mm.dtype, torch.ops.aten.addmm.dtype_out):
            return func(*args, **kwargs)
        *total, left, right, dtype = args
        assert left.dtype == right.dtype
        assert dtype == left.dtype or (dtype == torch.float32 and left.dtype == torch.bfloat16)
        self.calls.append((func.overloadpacket.__name__, left.dtype, dtype))
        product = left.float() @ right.float()
        if not total:
            return product.to(dtype)
        assert total[0].dtype == kwargs["out"].dtype == dtype
        return kwargs["out"].copy_(total[0] + product)
