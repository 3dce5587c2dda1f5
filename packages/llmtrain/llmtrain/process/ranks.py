"""The processes that train together: one, or the ranks of a torch.distributed process group.

A rank holds its share of the sequences. What must be the same everywhere is made so here.
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
from entrostat.reduce import LocalReduce

from .local_ranks import free_port, is_worker

T = TypeVar("T")
TIMEOUT = 1800.0
"""Seconds that a rank waits for the others in a collective, where no configuration says."""


class Ranks:
    """A process on its own."""

    rank: int = 0
    size: int = 1

    def __init__(self) -> None:
        self.reduce = LocalReduce()
        """For plans and diagnoses."""

    def total(self, x: Tensor) -> Tensor:
        """Sum of x over ranks, of one shape everywhere."""
        return x

    def mean(self, x: Tensor) -> float:
        """Mean of the numbers x (N,) of all ranks; NaN of none."""
        total, count = self.total(torch.tensor([x.sum(dtype=torch.float64), len(x)], dtype=torch.float64))
        return float(total / count)

    def most(self, count: int) -> int:
        """The largest count of any rank."""
        return count

    def greatest(self, x: Tensor) -> Tensor:
        """The greatest of any rank, for each of the numbers x, of one shape everywhere."""
        return x

    def deal(self, parts: Sequence[T] | None) -> T:
        """Each rank's of the parts that the first rank has, one a rank; the others give None."""
        assert parts is not None
        return parts[0]

    def exchange(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Rows of all ranks for this one; of `rows` (n, …) the first counts[0] go to rank 0, the next to rank 1."""
        return rows

    def gather(self, items: list[T]) -> list[T]:
        """The items of all ranks, on each."""
        return items

    def barrier(self) -> None:
        """Wait until all ranks are here."""


class DistRanks(Ranks):
    """One of the ranks of the default process group; tensors travel by `device`."""

    def __init__(self, device: torch.device) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.reduce = DistReduce()
        self.device = device

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
        dist.scatter_object_list(dealt, None if parts is None else list(parts))
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
        dist.all_gather_object(parts, items)
        return [item for part in parts for item in part]

    def barrier(self) -> None:
        self.most(0)


def join(device: str, timeout: float = TIMEOUT) -> DistRanks:
    """Join the process group that the environment describes, RANK, WORLD_SIZE and so on; a group of one without it.

    timeout: seconds that a rank waits for the others in a collective; they may still be sampling.
    """
    alone = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_SIZE": 1, "MASTER_ADDR": "127.0.0.1"}
    if not is_worker():
        os.environ |= {name: str(value) for name, value in alone.items()} | {"MASTER_PORT": str(free_port())}
    place = torch.device(device, int(os.environ["LOCAL_RANK"])) if device == "cuda" else torch.device(device)
    if device == "cuda":
        torch.cuda.set_device(place)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=timedelta(seconds=timeout))
    return DistRanks(place)


def is_of_another(error: Exception) -> bool:
    """Whether it seems to say no more than that another rank is gone."""
    return dist.is_initialized() and (isinstance(error, dist.DistError) or "by peer" in str(error))


def leave(code: int) -> None:
    """End the process of a rank with this exit code; a process on its own goes on.

    With code 0 it waits until all ranks are here. With another it does not: they may wait for it in another
    collective, and end when it is gone.
    The interpreter's own way out is not taken: threads of the process group abort it now and then.
    """
    if dist.is_initialized():
        if code == 0:
            dist.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
