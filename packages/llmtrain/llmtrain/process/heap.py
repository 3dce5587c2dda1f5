"""Freed memory that stays in this process for its next allocations.

glibc takes blocks above 32 MiB from the system and returns them when they are freed. The pages of the next one are
filled with zeros and mapped again: 100,000 to 117,000 page faults in a step of SmolLM2-135M on a CPU, at most 9,000 if
blocks are kept. What a fault costs depends on the machine; `python -m benchmarks.heap` measures it. Over hundreds of
steps holes remain between kept blocks, so free pages are given back every few steps.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
"""Parameters of mallopt(3)."""
NEVER = (1 << 31) - 1
"""Free bytes at the end of the heap above which they are returned."""
GROWTH = 1 << 26
"""Bytes by which the heap grows at least."""
EVERY = 10
"""Steps between two returns of free pages."""

_kept: list[ctypes.CDLL] = []


def keep_freed_memory() -> None:
    """Make this process keep freed memory; no-op with a C library other than glibc. For a program's start."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):
        for parameter, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, NEVER), (M_TOP_PAD, GROWTH)):
            libc.mallopt(parameter, value)
        _kept.append(libc)


def give_back(step: int) -> None:
    """Return free pages to the system in every EVERY-th step, if this process keeps them."""
    if _kept and step % EVERY == EVERY - 1:
        _kept[0].malloc_trim(0)
