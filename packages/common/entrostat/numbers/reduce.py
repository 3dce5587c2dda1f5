"""Statistics over the whole optimizer mini-batch: all tokens of this process, or of all ranks.

Controllers never call torch.distributed; they use one of these objects. Sums are accumulated in float64.
"""

import math
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from .ordered_bits import from_ordered_bits, ordered_bits
from .per_run import constant

Tie = Tensor | Callable[[], Tensor] | None
EXCHANGE = 1 << 16
"""Upper limit for the number of scores that all ranks together send if each sends its own k largest."""
DIGIT = 11
"""Bits of a score that one histogram resolves."""
SORTED = 16
"""Largest k for which sorting the k largest is faster than selecting the k-th."""


class LocalReduce:
    """Reduction over the tokens of this process. Inputs are (..., N), results (...,)."""

    def total(self, count: int) -> int:
        """Return the sum of a Python integer over ranks."""
        return count

    def offset(self, count: int) -> int:
        """Return the sum of `count` over the ranks before this one."""
        return 0

    def size(self, x: Tensor) -> Tensor:
        """Return the number of tokens in the mini-batch; x (..., N) is this rank's part. float64 (1,), at least 1."""
        return constant(max(x.shape[-1], 1), torch.float64, x.device)

    def _across(self, x: Tensor, op: dist.ReduceOp.RedOpType) -> Tensor:
        return x

    def sum(self, x: Tensor) -> Tensor:
        return self._across(x.sum(-1, dtype=torch.float64), dist.ReduceOp.SUM)

    def count(self, mask: Tensor) -> Tensor:
        """Return the number of true elements, int64."""
        return self._across(mask.sum(-1), dist.ReduceOp.SUM)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the mini-batch; NaN if it has no tokens."""
        local = x.sum(-1, dtype=torch.float64)
        total, size = self.sum(torch.stack([local, torch.full_like(local, x.shape[-1])]).unsqueeze(-1))
        return total / size

    def max(self, x: Tensor) -> Tensor:
        """Return the maximum; −inf if there are no tokens."""
        local = x.amax(-1) if x.shape[-1] else x.new_full(x.shape[:-1], -math.inf)
        return self._across(local, dist.ReduceOp.MAX)

    def min(self, x: Tensor) -> Tensor:
        """Return the minimum; +inf if there are no tokens."""
        return -self.max(-x)

    def kth_largest(self, score: Tensor, k: Tensor) -> Tensor:
        """Return the k-th largest score of each run, (...,); k is int64 (...,) with 1 ≤ k ≤ N. −inf without tokens."""
        return _kth_largest(score, k)

    def top_k(self, score: Tensor, k: int | Tensor, tie: Tie = None) -> Tensor:
        """Return a mask (..., N) of the k largest scores over all ranks; −inf is never chosen.

        k is one number, or one for each run (...,). Of equal scores at the threshold, those with the smaller `tie`
        (..., N) are chosen; `tie` belongs to the token, so that the choice does not depend on the token's place.
        Without `tie` all of them are chosen. If `tie` is a function, it is called only if needed.
        """
        k = torch.as_tensor(k, device=score.device)
        score = score.expand(torch.broadcast_shapes((*k.shape, 1), score.shape))
        finite = score > -math.inf
        k = torch.minimum(k, self.count(finite))
        threshold = self.kth_largest(score, k.clamp(min=1)).unsqueeze(-1)
        threshold = threshold.masked_fill((k < 1).unsqueeze(-1), math.nan)  # no score reaches it
        chosen = score >= threshold
        chosen &= finite
        if tie is None:
            return chosen
        if not bool((self.count(chosen) > k.clamp(min=0)).any()):
            return chosen
        above = score > threshold
        tied = chosen & ~above
        order = tie() if callable(tie) else tie
        return above | self.top_k(torch.where(tied, -order, -math.inf), k - self.count(above))


class DistReduce(LocalReduce):
    """Reduction over the tokens of all ranks of a torch.distributed process group.

    Every rank must make the same calls. A rank may have no tokens.
    """

    def __init__(self, group: dist.ProcessGroup | None = None, exchange: int = EXCHANGE) -> None:
        self.group = group
        self.exchange = exchange

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

    def size(self, x: Tensor) -> Tensor:
        local = torch.tensor([x.shape[-1]], dtype=torch.float64, device=x.device)
        return self._across(local, dist.ReduceOp.SUM).clamp(min=1)

    def _gather(self, x: Tensor) -> Tensor:
        """Return x of every rank, (ranks, ...); the shape must be the same on all ranks."""
        parts = [torch.empty_like(x) for _ in range(self.ranks)]
        dist.all_gather(parts, x.contiguous(), group=self.group)
        return torch.stack(parts)

    @property
    def ranks(self) -> int:
        return dist.get_world_size(self.group)

    def kth_largest(self, score: Tensor, k: Tensor) -> Tensor:
        """Return the k-th largest score of each run over all ranks, (...,), without gathering all tokens.

        For small k every rank sends its own k largest scores: one all-gather. Otherwise histograms over the bits of the
        score, from the highest down, locate the k-th: one all-reduce of 2¹¹ counts for every 11 bits, 3 rounds for
        float32 and 6 for float64.
        """
        most = int(k.max())
        if most * self.ranks > self.exchange:
            return self._radix_select(score, k)
        best = score.topk(min(most, score.shape[-1]), dim=-1).values
        padding = best.new_full((*best.shape[:-1], most - best.shape[-1]), -math.inf)
        sent = self._gather(torch.cat([best, padding], -1))
        return _kth_largest(sent.movedim(0, -2).flatten(-2), k)

    def _radix_select(self, score: Tensor, k: Tensor) -> Tensor:
        runs = k.numel()
        keys = ordered_bits(score if score.dtype == torch.float64 else score.float()).reshape(runs, -1)
        below = keys.element_size() * 8  # bits not yet resolved
        run = torch.arange(runs, device=keys.device)[:, None].expand(keys.shape).flatten() if runs > 1 else None
        keys, wanted, found = keys.flatten(), k.flatten(), torch.zeros_like(k.flatten())
        first = True
        while below:
            width = min(DIGIT, below)
            below, bins = below - width, 1 << width
            digit = (keys >> below).bitwise_and_(bins - 1)
            if first:
                digit ^= bins >> 1  # the sign bit: negative numbers come first
            counts = torch.bincount(digit if run is None else run * bins + digit, minlength=runs * bins)
            counts = self._across(counts.reshape(runs, bins), dist.ReduceOp.SUM)
            reaching = counts.flip(-1).cumsum(-1).flip(-1)  # tokens in this bin or a higher one
            chosen = (reaching >= wanted.unsqueeze(-1)).sum(-1) - 1
            wanted = wanted - (reaching - counts).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
            found = chosen - (bins >> 1) if first else found * bins + chosen
            inside = (digit == (chosen if run is None else chosen[run])).nonzero()[:, 0]
            keys, run, first = keys[inside], None if run is None else run[inside], False
        return from_ordered_bits(found.to(keys.dtype)).to(score.dtype).reshape(k.shape)


def _kth_largest(score: Tensor, k: Tensor) -> Tensor:
    """Return the k-th largest of each row of this process, (..., n) to (...,); −inf if n is 0."""
    n = score.shape[-1]
    if not n:
        return score.new_full(k.shape, -math.inf)
    most = int(k.max())
    if most > SORTED and most == int(k.min()):
        return score.kthvalue(n - most + 1, dim=-1).values  # selects, where topk also sorts
    return score.topk(most, dim=-1).values.gather(-1, (k - 1).unsqueeze(-1)).squeeze(-1)
