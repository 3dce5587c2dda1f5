"""The output layer: hidden states to logits and back, for whole vocabularies or a rank's part of one.

Shapes: n tokens, D hidden, V vocabulary (of this rank). A temperature divides the logits; it is a number or (n,).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import rows
from .rows import Sums

CHUNK_TOKENS = 4096
"""Most tokens whose logits are held at once."""
CHUNK_BYTES = {"cpu": 1 << 27, "cuda": 1 << 31}
"""Most bytes of fp32 logits held at once, by device."""


def chunk_tokens(vocabulary: int, device: torch.device) -> int:
    """Tokens of a chunk: as many as the memory for logits allows, between 16 and 4,096."""
    allowed = CHUNK_BYTES.get(device.type, CHUNK_BYTES["cuda"]) // (4 * vocabulary)
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

    def offset(self) -> int:
        """First token of this rank's part."""
        return 0 if self.group is None else dist.get_rank(self.group) * self.weight.shape[0]

    def logits(self, hidden: Tensor, temperature: float | Tensor) -> Tensor:
        """(n, V), at least fp32, in memory of their own."""
        folded = self.softcap is None and self.bias is None  # dividing n·D numbers is cheaper than n·V
        scaled = hidden / _column(temperature) if folded and not _is_one(temperature) else hidden
        logits = _matmul(scaled.to(self.weight.dtype), self.weight)
        if folded:
            return logits
        if self.bias is not None:
            logits += self.bias
        if self.softcap is not None:
            logits = logits.div_(self.softcap).tanh_().mul_(self.softcap)
        return logits if _is_one(temperature) else logits.div_(_column(temperature))

    @property
    def rows(self) -> Any:
        """The module that works on rows of logits: Triton kernels on CUDA, torch elsewhere."""
        if not self.weight.is_cuda:
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
        self, scratch: Any, sums: Sums, entropy: Tensor, targets: Tensor, d_logp: Tensor, d_entropy: Tensor
    ) -> Tensor:
        """∂loss/∂logits of this rank's part, (n, V); overwrites the scratch."""
        return self.rows.gradient(scratch, sums, entropy, targets - self.offset(), d_logp, d_entropy)

    def pull_back(
        self,
        dlogits: Tensor,
        hidden: Tensor,
        temperature: float | Tensor,
        d_weight: Tensor | None,
        d_bias: Tensor | None,
    ) -> Tensor:
        """∂loss/∂hidden (n, D); adds to d_weight (V, D) and d_bias (V,). Overwrites dlogits."""
        if not _is_one(temperature):
            dlogits = dlogits.div_(_column(temperature))
        if self.softcap is not None:
            raw = self.logits(hidden, 1.0)
            dlogits = dlogits.mul_(raw.div_(self.softcap).square_().neg_().add_(1.0))
        if d_bias is not None:
            d_bias += dlogits.sum(0)
        if d_weight is not None:
            d_weight.addmm_(dlogits.T.to(d_weight.dtype), hidden.to(d_weight.dtype))
        d_hidden = dlogits.to(self.weight.dtype) @ self.weight
        if self.group is not None:
            dist.all_reduce(d_hidden, group=self.group)
        return d_hidden


def combine(local: Sums, group: dist.ProcessGroup) -> Sums:
    """Bring the sums of all ranks to one shift and add them."""
    shift = local.shift.clone()
    dist.all_reduce(shift, op=dist.ReduceOp.MAX, group=group)
    d = local.shift - shift
    f = d.exp()
    target = torch.where(local.target == -torch.inf, 0.0, local.target + d)
    s1, t1, s2, t2, u2 = local[1:6]
    both = torch.stack(
        [f * s1, f * (t1 + d * s1), f**2 * s2, f**2 * (t2 + d * s2), f**2 * (u2 + 2 * d * t2 + d**2 * s2), target]
    )
    dist.all_reduce(both, group=group)
    return Sums(shift, *both)


def _matmul(hidden: Tensor, weight: Tensor) -> Tensor:
    """hidden (n, D) times weight (V, D) transposed, at least fp32."""
    if weight.dtype in (torch.float32, torch.float64):
        return hidden @ weight.T
    if weight.is_cuda:
        return torch.mm(hidden, weight.T, out_dtype=torch.float32)
    return hidden.float() @ weight.float().T  # a CPU would round the logits to 8 bits


def _column(x: float | Tensor) -> float | Tensor:
    return x[:, None] if isinstance(x, Tensor) else x


def _is_one(x: float | Tensor) -> bool:
    return isinstance(x, int | float) and x == 1.0
