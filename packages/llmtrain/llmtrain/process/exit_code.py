"""Exit codes of processes that another process has started: Linux 6.15 or later keeps them for holders of a descriptor.

Ray, which starts learners, does not say how they ended. Elsewhere, and on other machines, the code stays unknown.
"""

import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

GET_INFO = 0xC040FF0B
"""PIDFD_GET_INFO of linux/pidfd.h, with the first version of its struct."""
SIZE, CODE_AT, EXIT = 64, 60, 1 << 3
"""Bytes of that struct, place of the exit code in it, and the bit of its mask that asks for this code."""
WAIT, POLL = 1.0, 0.02
"""Seconds allowed for a process to end after its connections have closed, and between looks."""
ExitCodes = Callable[[int], int | None]
"""Function from the key of a process that has ended to its exit code; see `exit_codes`."""


def unknown(key: int) -> None:
    """Return None, because no process is held."""


@contextmanager
def exit_codes(pids: Mapping[int, int]) -> Iterator[ExitCodes]:
    """Hold running processes; yield a function that returns the exit code of one that ends, None if it is unknown.

    pids: their ids, by the keys that the function takes. The code is minus the number of the signal that killed it.
    """
    held = {}
    try:
        for key, pid in pids.items():
            if sys.platform == "linux":
                try:
                    held[key] = os.pidfd_open(pid)
                except OSError:  # it has ended, or the kernel has no such descriptors
                    continue
        yield lambda key: _await(held[key]) if key in held else None
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def _await(descriptor: int) -> int | None:
    """Return the exit code of a process that is about to end; None if it does not, or if the kernel cannot tell."""
    end = time.monotonic() + WAIT
    while (code := _ask(descriptor)) is None and time.monotonic() < end:
        time.sleep(POLL)
    return code


def _ask(descriptor: int) -> int | None:
    import fcntl

    info = bytearray(struct.pack("=Q", EXIT).ljust(SIZE, b"\0"))
    try:
        fcntl.ioctl(descriptor, GET_INFO, info)
    except OSError:
        return None
    if not struct.unpack_from("=Q", info)[0] & EXIT:
        return None
    return os.waitstatus_to_exitcode(struct.unpack_from("=i", info, CODE_AT)[0])
