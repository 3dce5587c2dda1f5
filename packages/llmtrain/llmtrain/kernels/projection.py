"""Output layer: hidden states to logits and back, for a whole vocabulary or a rank's part of it.

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
"""Weight dtypes whose logits need no wider dtype."""
CHUNK_TOKENS = 4096
"""Upper limit for tokens per chunk of logits."""
CHUNK_BYTES = {"cpu": 1 << 27, "cuda": 5 << 29}
"""Upper limit for bytes of fp32 logits per chunk, by device; on CUDA 4,096 tokens of Qwen's 151,936 fit."""
TILE = 128
"""Tile of a GPU's matrix products, in tokens."""


def chunk_tokens(vocabulary: int, device: torch.device) -> int:
    """Return the tokens of a chunk: as many as the memory for logits allows, between 16 and 4,096."""
    allowed = CHUNK_BYTES.get(device.type, CHUNK_BYTES["cuda"]) // (4 * vocabulary)
    if device.type != "cpu" and allowed > TILE:
        allowed -= allowed % TILE
    return min(max(allowed, 16), CHUNK_TOKENS)


@dataclass(frozen=True, eq=False)
class Projection:
    """Weight W (V, D) with the options of real models."""

    weight: Tensor
    bias: Tensor | None = None
    """Bias (V,)."""
    softcap: float | None = None
    """c of c·tanh(logit/c), applied before the temperature."""
    group: dist.ProcessGroup | None = None
    """Ranks that share the vocabulary, in the order of their ranks; None if this rank has all of it."""
    dtype: torch.dtype | None = None
    """Dtype of the logits. None: fp32, or float64 for float64 weights."""

    def offset(self) -> int:
        """Return the first token of this rank's part."""
        return 0 if self.group is None else dist.get_rank(self.group) * self.weight.shape[0]

    def logits(self, hidden: Tensor, temperature: float | Tensor) -> Tensor:
        """Return logits (n, V) in new memory."""
        hidden = hidden.to(self.weight.dtype)
        plain = self.softcap is None and self.bias is None
        if plain and self.weight.dtype in WIDE:  # dividing n·D numbers is cheaper than n·V; bf16 would round
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
        """Module for rows of logits: Triton kernels on CUDA, torch elsewhere and for float64."""
        if not self.weight.is_cuda or self.weight.dtype == torch.float64:
            return rows
        from . import triton_rows

        return triton_rows

    def sums(self, logits: Tensor, targets: Tensor) -> tuple[Sums, Any]:
        """Return accumulators over the whole vocabulary, and the scratch that the gradient needs.

        Takes two all-reduces over the ranks, a maximum and a sum. May overwrite the logits.
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
        """Return ∂loss/∂(logits·temperature) of this rank's part, (n, V); overwrites the scratch."""
        narrow = self.weight.is_cuda and self.softcap is None and self.bias is None
        dtype = self.weight.dtype if narrow else None  # dtype of the matrix products
        slopes = [(x / temperature).to(x.dtype) for x in (d_logp, d_entropy)]
        return self.rows.gradient(scratch, sums, targets - self.offset(), *slopes, dtype)

    def pull_back(
        self, dlogits: Tensor, hidden: Tensor, d_weight: Tensor | None, d_bias: Tensor | None, d_hidden: bool
    ) -> Tensor | None:
        """Return ∂loss/∂hidden (n, D) if `d_hidden`; add to d_weight (V, D) and d_bias (V,), in their dtypes.

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
    """Return the sums over all ranks, relative to a common shift.

    Each rank's rest excludes one maximum; all of these except one are added back here.
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
    """Return hidden (n, D) @ weight (V, D)ᵀ in at least fp32; on CUDA in the weight's dtype if `dtype` equals it."""
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
    """Return x[rows] of a tensor (N,); return a number unchanged."""
    return x[rows] if isinstance(x, Tensor) else x
