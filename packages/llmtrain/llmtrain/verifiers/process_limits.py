"""Limits on the memory and the processor time of all processes below this one together.

Imported by sandbox.py, which runs as a file of its own; uses the standard library only. RLIMIT_AS and RLIMIT_CPU hold
for each process alone, so a program with four processes could use four times as much. The sums are read from /proc
every POLL seconds; a kernel without the lists of children there has the limits of each process only.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

POLL = 0.02
"""Interval of readings (seconds)."""
SHARED = ("RssAnon:", "RssShmem:")
"""Lines of /proc/PID/status that add up to the memory a process has for itself, or shares with others."""
TICK = 1 / os.sysconf("SC_CLK_TCK")


def below(pid: int) -> Iterator[int]:
    """Yield the processes below this one."""
    left = [pid]
    while left:
        pid = left.pop()
        with contextlib.suppress(OSError):  # it may have ended
            for task in os.listdir(f"/proc/{pid}/task"):
                children = [*map(int, _read(f"/proc/{pid}/task/{task}/children").split())]
                left += children
                yield from children


def end_all() -> None:
    """Kill the processes below this one."""
    while found := [pid for pid in below(os.getpid()) if " Z " not in _stat(pid)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


class Sums:
    """Memory and processor time that the processes below one use together."""

    def __init__(self, memory_mib: int, cpu_seconds: int, above: int | None = None) -> None:
        """above: the process; this one if None."""
        self.memory_mib, self.cpu_seconds, self.above = memory_mib, cpu_seconds, above or os.getpid()
        self.seconds: dict[int, float] = {}
        """Processor time that each process had used when it was last seen."""

    def exceeded(self) -> str:
        """Return the limit that is exceeded, as text; "" if none is."""
        kib, pids = 0, list(below(self.above))
        for pid in pids:
            with contextlib.suppress(OSError, IndexError):
                used = _stat(pid).rpartition(")")[2].split()
                self.seconds[pid] = (int(used[11]) + int(used[12])) * TICK
                kib += _kib(f"/proc/{pid}/status", SHARED)
        if kib > self.memory_mib * 1024 and self._shares(pids) > self.memory_mib * 1024:
            return f"more than {self.memory_mib} MiB of memory"
        if sum(self.seconds.values()) > self.cpu_seconds:
            return f"more than {self.cpu_seconds} s of processor time"
        return ""

    def _shares(self, pids: list[int]) -> int:
        """Return the sum of memory (KiB) that counts what processes share once, as after a fork."""
        total = 0
        for pid in pids:
            try:
                total += _kib(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:"))
            except FileNotFoundError:
                continue
            except OSError:  # not permitted
                with contextlib.suppress(OSError):
                    total += _kib(f"/proc/{pid}/status", SHARED)
        return total


def _kib(file: str, lines: tuple[str, ...]) -> int:
    """Return the sum of lines of a file of /proc (KiB)."""
    return sum(int(line.split()[1]) for line in _read(file).splitlines() if line.startswith(lines))


def _stat(pid: int) -> str:
    try:
        return _read(f"/proc/{pid}/stat")
    except OSError:
        return " Z "


def _read(file: str) -> str:
    with open(file) as opened:
        return opened.read()
