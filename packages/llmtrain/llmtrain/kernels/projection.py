"""The output layer: hidden states to logits and back, for whole vocabularies or a rank's part of one.

Shapes: n tokens, D hidden, V vocabulary (of this rank). A temperature divides the logits; it is a number or (n,).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import rows
from .rows import LOWEST, Sums

WIDE = (torch.float32, torch.float64)
"""Weights whose products need no wider logits."""
CHUNK_TOKENS = 4096
"""Most tokens whose logits are held at once."""
CHUNK_BYTES = {"cpu": 1 << 27, "cuda": 5 << 29}
"""Most bytes of fp32 logits held at once, by device; on CUDA those of 4,096 tokens of Qwen's 151,936."""
TILE = 128
"""Tokens that a GPU's matrix products take at a time."""


def chunk_tokens(vocabulary: int, device: torch.device) -> int:
    """Tokens of a chunk: as many as the memory for logits allows, between 16 and 4,096."""
    allowed = CHUNK_BYTES.get(device.type, CHUNK_BYTES["cuda"]) // (4 * vocabulary)
    if device.type != "cpu" and allowed > TILE:
        allowed -= allowed % TILE
    return min(max(allowed, 16), CHUNK_TOKENS)


@dataclass(frozen=True, eq=False)
class Projection:
    """W (V, D) with the options of real models."""

    weight: Tensor
    bias: Tensor | None = None
    """(V,)."""
    softcap: float | None = None
    """c of c·tanh(logit/c), applied before the temperature."""
    group: dist.ProcessGroup | None = None
    """Ranks that hold the other parts of the vocabulary, in the order of their ranks; None: all of it is here."""
    dtype: torch.dtype | None = None
    """What logits are held in; None: fp32, or float64 where the weight is."""

    def offset(self) -> int:
        """First token of this rank's part."""
        return 0 if self.group is None else dist.get_rank(self.group) * self.weight.shape[0]

    def logits(self, hidden: Tensor, temperature: float | Tensor) -> Tensor:
        """(n, V), in memory of their own."""
        hidden = hidden.to(self.weight.dtype)
        plain = self.softcap is None and self.bias is None
        if plain and self.weight.dtype in WIDE:  # dividing n·D numbers is cheaper than n·V, but narrow ones are rounded
            hidden, temperature = hidden if _is_one(temperature) else hidden / _column(temperature), 1.0
        plain = plain and _is_one(temperature)
        logits = _matmul(hidden, self.weight, self.dtype if plain else None)
        if self.bias is not None:
            logits += self.bias
        if self.softcap is not None:
            logits = logits.div_(self.softcap).tanh_().mul_(self.softcap)
        logits = logits if _is_one(temperature) else logits.div_(_column(temperature))
        return logits.to(self.dtype or logits.dtype)

    @property
    def rows(self) -> Any:
        """The module that works on rows of logits: Triton kernels on CUDA, torch elsewhere and for float64."""
        if not self.weight.is_cuda or self.weight.dtype == torch.float64:
            return rows
        from . import triton_rows

        return triton_rows

    def sums(self, logits: Tensor, targets: Tensor) -> tuple[Sums, Any]:
        """Accumulators over the whole vocabulary, and what the gradient needs again.

        One maximum and one sum over the ranks. May overwrite the logits.
        """
        local, scratch = self.rows.accumulate(logits, targets - self.offset())
        return (local if self.group is None else combine(local, self.group)), scratch

    def dlogits(
        self,
        scratch: Any,
        sums: Sums,
        targets: Tensor,
        d_logp: Tensor,
        d_entropy: Tensor,
        temperature: float | Tensor,
    ) -> Tensor:
        """∂loss/∂(logits·temperature) of this rank's part, (n, V); overwrites the scratch."""
        narrow = self.weight.is_cuda and self.softcap is None and self.bias is None
        dtype = self.weight.dtype if narrow else None  # as the products take it
        slopes = [(x / temperature).to(x.dtype) for x in (d_logp, d_entropy)]
        return self.rows.gradient(scratch, sums, targets - self.offset(), *slopes, dtype)

    def pull_back(
        self, dlogits: Tensor, hidden: Tensor, d_weight: Tensor | None, d_bias: Tensor | None, d_hidden: bool
    ) -> Tensor | None:
        """∂loss/∂hidden (n, D) where it is asked for; adds to d_weight (V, D) and d_bias (V,), in their dtypes.

        Overwrites dlogits.
        """
        if self.softcap is not None:
            raw = self.logits(hidden, 1.0)
            dlogits = dlogits.mul_(raw.div_(self.softcap).square_().neg_().add_(1.0))
        if d_bias is not None:
            d_bias += dlogits.sum(0)
        narrow = dlogits.to(self.weight.dtype)
        if d_weight is not None and self.weight.is_cuda and d_weight.dtype != narrow.dtype:
            torch.addmm(d_weight, narrow.T, hidden.to(narrow.dtype), out_dtype=d_weight.dtype, out=d_weight)
        elif d_weight is not None:
            d_weight.addmm_(dlogits.to(d_weight.dtype).T, hidden.to(d_weight.dtype))
        if not d_hidden:
            return None
        out = narrow @ self.weight
        if self.group is not None:
            dist.all_reduce(out, group=self.group)
        return out


def combine(local: Sums, group: dist.ProcessGroup) -> Sums:
    """Bring the sums of all ranks to one shift and add them.

    Every part left one maximum out of its rest; all but one of these join it here.
    """
    largest = torch.stack([local.shift, local.target])
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    shift, target = largest
    d = (local.shift - shift).clamp_(min=LOWEST)
    f = d.exp()
    top = d == 0
    rest, t1, s2, t2, u2 = local[1:6]
    added = torch.stack(
        [
            f * torch.where(top, rest, local.s1),
            f * (t1 + d * local.s1),
            f**2 * s2,
            f**2 * (t2 + d * s2),
            f**2 * (u2 + 2 * d * t2 + d**2 * s2),
            top.to(rest.dtype),
        ]
    )
    dist.all_reduce(added, group=group)
    rest, t1, s2, t2, u2, tops = added
    return Sums(shift, rest + (tops - 1), t1, s2, t2, u2, target)


def _matmul(hidden: Tensor, weight: Tensor, dtype: torch.dtype | None) -> Tensor:
    """hidden (n, D) times weight (V, D) transposed in at least fp32; on CUDA in the weight's dtype if that is given."""
    if weight.dtype in WIDE:
        return hidden @ weight.T
    if weight.is_cuda:
        return torch.mm(hidden, weight.T, out_dtype=dtype if dtype == weight.dtype else torch.float32)
    return hidden.float() @ weight.float().T  # a CPU would round the logits to 8 bits


def _column(x: float | Tensor) -> float | Tensor:
    return x[:, None] if isinstance(x, Tensor) else x


def _is_one(x: float | Tensor) -> bool:
    return isinstance(x, int | float) and x == 1.0


def of_rows(x: Any, rows: Any) -> Any:
    """A number stays, a tensor of (N,) is indexed."""
    return x[rows] if isinstance(x, Tensor) else x
