"""Statistics over the whole optimizer mini-batch: all tokens of this rank, and of all ranks.

Controllers never call torch.distributed; they are handed one of these. Sums are accumulated in float64.
"""

import math

import torch
import torch.distributed as dist
from torch import Tensor


class LocalReduce:
    """Reduce over the tokens of this process. Inputs are (..., N), results (...,)."""

    def total(self, count: int) -> int:
        """Sum of a Python integer over ranks."""
        return count

    def offset(self, count: int) -> int:
        """Sum of `count` over the ranks before this one."""
        return 0

    def _across(self, x: Tensor, op: dist.ReduceOp.RedOpType) -> Tensor:
        return x

    def sum(self, x: Tensor) -> Tensor:
        return self._across(x.sum(-1, dtype=torch.float64), dist.ReduceOp.SUM)

    def count(self, mask: Tensor) -> Tensor:
        """Number of true elements, int64."""
        return self._across(mask.sum(-1), dist.ReduceOp.SUM)

    def mean(self, x: Tensor) -> Tensor:
        """Mean over the mini-batch; NaN when it has no tokens."""
        return self.sum(x) / float(self.total(x.shape[-1]) or math.nan)

    def max(self, x: Tensor) -> Tensor:
        """Maximum; −inf when there is no token."""
        local = x.amax(-1) if x.shape[-1] else x.new_full(x.shape[:-1], -math.inf)
        return self._across(local, dist.ReduceOp.MAX)

    def min(self, x: Tensor) -> Tensor:
        """Minimum; +inf when there is no token."""
        return -self.max(-x)

    def kth_largest(self, score: Tensor, k: Tensor) -> Tensor:
        """The k-th largest score of each run, shape (...,); k is int64 (...,) with 1 ≤ k ≤ N."""
        top = score.topk(int(k.max()), dim=-1).values
        return top.gather(-1, (k - 1).unsqueeze(-1)).squeeze(-1)

    def top_k(self, score: Tensor, k: int | Tensor, tie: Tensor | None = None) -> Tensor:
        """Mask (..., N) of the k largest scores over all ranks; −inf is never chosen.

        Equal scores at the threshold are ordered by the smaller `tie` (..., N), a number of the token itself, so that
        the choice does not depend on where a token sits; without it all of them are chosen.
        """
        finite = score > -math.inf
        available = self.count(finite)
        k = torch.minimum(torch.as_tensor(k, device=score.device).expand(available.shape), available)
        threshold = self.kth_largest(score, k.clamp(min=1)) if self.total(score.shape[-1]) else score.new_zeros(k.shape)
        threshold = threshold.unsqueeze(-1)
        some = (k > 0).unsqueeze(-1)
        above = (score > threshold) & some
        tied = (score == threshold) & finite & some
        if tie is None:
            return above | tied
        missing = k - self.count(above)
        if bool((self.count(tied) > missing).any()):
            tied = self.top_k(torch.where(tied, -tie, -math.inf), missing)
        return above | tied


class DistReduce(LocalReduce):
    """Reduce over the tokens of all ranks of a torch.distributed process group.

    Every rank must make the same calls. A rank may hold no tokens.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group

    def _counts(self, count: int) -> list[int]:
        counts: list[int] = [0] * dist.get_world_size(self.group)
        dist.all_gather_object(counts, count, group=self.group)
        return counts

    def total(self, count: int) -> int:
        return sum(self._counts(count))

    def offset(self, count: int) -> int:
        return sum(self._counts(count)[: dist.get_rank(self.group)])

    def _across(self, x: Tensor, op: dist.ReduceOp.RedOpType) -> Tensor:
        x = x.clone()
        dist.all_reduce(x, op=op, group=self.group)
        return x

    def kth_largest(self, score: Tensor, k: Tensor) -> Tensor:
        """Bisection on the bits of the score: at most 64 rounds of one small all-reduce, no token leaves its rank."""
        keys = _ordered_bits(score.double())
        low, high = _ordered_bits(self.min(score).double()), _ordered_bits(self.max(score).double())
        while bool((low < high).any()):
            middle = (low | high) - ((low ^ high) >> 1)  # mean of the two, rounded up, without overflow
            enough = self.count(keys >= middle.unsqueeze(-1)) >= k
            low, high = torch.where(enough, middle, low), torch.where(enough, high, middle - 1)
        return _from_ordered_bits(low).to(score.dtype)


def _ordered_bits(x: Tensor) -> Tensor:
    """Map float64 to int64 so that the order is kept."""
    bits = (x + 0.0).view(torch.int64)  # adding zero turns −0 into +0, which compare equal
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


def _from_ordered_bits(bits: Tensor) -> Tensor:
    return (bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)).view(torch.float64)
