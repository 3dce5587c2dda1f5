"""What small tensors are worked on with: how many threads, and memory that is kept."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of mallopt(3)."""
KEPT, LARGEST = 1 << 30, 1 << 25
"""Bytes."""


@cache
def keep_freed_memory() -> None:
    """Ask the C library, where it is glibc, to keep freed memory of the process for what is allocated next.

    A simulation allocates and frees the same hundred tensors in every pass. By default glibc returns those of a
    megabyte to the system at once, and getting the pages back takes several times as long as the arithmetic on them.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)  # glibc takes no more
        mallopt(M_TRIM_THRESHOLD, KEPT)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for what happens inside.

    A bandit's operations take microseconds: waking other threads costs more than they save even with hundreds of runs
    side by side, and a thousand times more on a busy machine.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
