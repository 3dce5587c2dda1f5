"""Process settings for fast work on small tensors: one thread, and freed memory that stays in the process."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""
KEPT, LARGEST = 1 << 30, 1 << 25
"""Values of M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, bytes."""


@cache
def keep_freed_memory() -> None:
    """Make glibc keep the process's freed memory for later allocations; no-op with another C library.

    A simulation allocates and frees the same hundred tensors in every pass. By default glibc returns tensors of a
    megabyte to the system at once, and getting the pages back takes several times as long as the arithmetic on them.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # missing in other C libraries
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)  # glibc's upper limit
        mallopt(M_TRIM_THRESHOLD, KEPT)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with one torch thread.

    A bandit's operations take microseconds: waking other threads costs more than they save even with hundreds of runs
    side by side, and a thousand times more on a busy machine.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
