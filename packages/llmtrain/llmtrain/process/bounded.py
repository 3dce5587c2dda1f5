"""Limits of time and memory for a block that runs what others wrote, such as a chat template.

with bounded(10.0, 2**30):
    template.render()
"""

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

STATUS = Path("/proc/self/statm")
"""Linux's sizes of this process in pages; the first is its address space."""


@contextmanager
def bounded(seconds: float, size: int) -> Iterator[None]:
    """Raise TimeoutError in a block that takes more seconds, MemoryError in one that takes `size` more bytes.

    Only in the main thread, which signals reach, and memory only on Linux; elsewhere a no-op.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, _too_long)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        if STATUS.exists():
            most = int(STATUS.read_text().split()[0]) * resource.getpagesize() + size
            known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_AS, (min([most, *known]), hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError
