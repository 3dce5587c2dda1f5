"""Processes that train together: one, or the ranks of a torch.distributed process group.

A rank holds its share of the sequences; the operations here combine values over all ranks.
"""

import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from entrostat import DistReduce
from entrostat.numbers.reduce import LocalReduce

from .local_ranks import free_port, is_worker

T = TypeVar("T")
TIMEOUT = 1800.0
"""Default timeout of a collective (seconds)."""


class Ranks:
    """Single process that trains alone; interface for several."""

    rank: int = 0
    size: int = 1

    def __init__(self) -> None:
        self.reduce = LocalReduce()
        """Reduction for plans and diagnostics."""

    def total(self, x: Tensor) -> Tensor:
        """Return the sum of x over ranks; x has the same shape on all of them."""
        return x

    def mean(self, x: Tensor) -> float:
        """Return the mean of the numbers x (N,) of all ranks; NaN if there are none."""
        total, count = self.total(torch.tensor([x.sum(dtype=torch.float64), len(x)], dtype=torch.float64))
        return float(total / count)

    def most(self, count: int) -> int:
        """Return the largest count of any rank."""
        return count

    def greatest(self, x: Tensor) -> Tensor:
        """Return the elementwise maximum of x over ranks; x has the same shape on all of them."""
        return x

    def deal(self, parts: Sequence[T] | None) -> T:
        """Return this rank's part of the parts on rank 0, one per rank; the other ranks pass None."""
        assert parts is not None
        return parts[0]

    def exchange(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Return the rows sent to this rank; of `rows` (n, …) the first counts[0] go to rank 0, the next to rank 1."""
        return rows

    def gather(self, items: list[T]) -> list[T]:
        """Return the items of all ranks, on every rank."""
        return items

    def barrier(self) -> None:
        """Wait until all ranks have called this."""


class DistRanks(Ranks):
    """Rank of the default process group; tensors are sent through `device`, objects from host to host.

    NCCL would put objects onto GPUs first: on rank 0 those of all ranks, while a rollout engine fills its memory.
    """

    def __init__(self, device: torch.device, timeout: float = TIMEOUT) -> None:
        """All ranks must call this. timeout: see `join`."""
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.reduce = DistReduce()
        self.device = device
        self.hosts = None
        """Group of the hosts' own memory; None for the default group, on a CPU."""
        if device.type == "cuda":
            self.hosts = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))

    def total(self, x: Tensor) -> Tensor:
        return self._across(x, dist.ReduceOp.SUM)

    def most(self, count: int) -> int:
        return int(self.greatest(torch.tensor(count)))

    def greatest(self, x: Tensor) -> Tensor:
        return self._across(x, dist.ReduceOp.MAX)

    def _across(self, x: Tensor, op: dist.ReduceOp.RedOpType) -> Tensor:
        sent = x.detach().to(self.device, copy=True)
        dist.all_reduce(sent, op=op)
        return sent.to(x.device)

    def deal(self, parts: Sequence[T] | None) -> T:
        dealt: list[T | None] = [None]
        dist.scatter_object_list(dealt, None if parts is None else list(parts), group=self.hosts)
        return cast(T, dealt[0])

    def exchange(self, rows: Tensor, counts: Tensor) -> Tensor:
        sent, leaving = rows.to(self.device), counts.to(self.device)
        arriving = torch.empty_like(leaving)
        dist.all_to_all_single(arriving, leaving)
        found = sent.new_empty((int(arriving.sum()), *sent.shape[1:]))
        dist.all_to_all_single(found, sent, arriving.tolist(), counts.tolist())
        return found.to(rows.device)

    def gather(self, items: list[T]) -> list[T]:
        parts: list[list[T]] = [[]] * self.size
        dist.all_gather_object(parts, items, group=self.hosts)
        return [item for part in parts for item in part]

    def barrier(self) -> None:
        self.most(0)


def join(device: str, timeout: float = TIMEOUT) -> DistRanks:
    """Join the process group described by RANK, WORLD_SIZE and so on; without these variables a group of one.

    timeout: upper limit for the wait in a collective (seconds); other ranks may still be sampling.
    """
    alone = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_SIZE": 1, "MASTER_ADDR": "127.0.0.1"}
    if not is_worker():
        os.environ |= {name: str(value) for name, value in alone.items()} | {"MASTER_PORT": str(free_port())}
    place = torch.device(device, int(os.environ["LOCAL_RANK"])) if device == "cuda" else torch.device(device)
    if device == "cuda":
        torch.cuda.set_device(place)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=timedelta(seconds=timeout))
    return DistRanks(place, timeout)


def is_of_another(error: Exception) -> bool:
    """Return True if the error seems to report only that another rank is gone."""
    return dist.is_initialized() and (isinstance(error, dist.DistError) or "by peer" in str(error))


def leave(code: int) -> None:
    """End the process of a rank with this exit code; no-op in a process on its own.

    With code 0 it first waits for all ranks. With another code it does not wait, because the others may be in another
    collective, and fail once this rank is gone. Skips the interpreter's normal exit, during which threads of the
    process group sometimes abort.
    """
    if dist.is_initialized():
        if code == 0:
            dist.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
