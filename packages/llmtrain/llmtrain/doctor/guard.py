"""Run a command for so many seconds at most, and leave no process of it behind.

    python -m llmtrain.doctor.guard SECONDS COMMAND ARGUMENT...

Exit code: the command's, 128 + n when signal n killed it, 124 when its time was up. Processes that the command started
are killed with it, those too that left its session or lost their parent (on Linux: elsewhere its process group).
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): processes below this one that lose their parent become its children."""
TIME_UP = 124
POLL = 0.05
"""Seconds between looks at the command."""
PATIENCE = 3.0
"""Seconds to wait at most for killed processes to be gone."""


def main(args: list[str]) -> int:
    limit, command, parent = float(args[0]), args[1:], os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    process = subprocess.Popen(command, start_new_session=True)
    try:
        end = time.monotonic() + limit
        while process.poll() is None and time.monotonic() < end and os.getppid() == parent:
            time.sleep(POLL)
        code = process.poll()
        return TIME_UP if code is None else code if code >= 0 else 128 - code
    finally:
        end_all(process.pid)


def end_all(group: int) -> None:
    """Kill the process group, then all children until there are none: each that dies leaves its own to this process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    with contextlib.suppress(ChildProcessError):  # none are left
        while time.monotonic() < end:
            for pid in children(os.getpid()):
                os.kill(pid, signal.SIGKILL)
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(POLL)


def children(parent: int) -> list[int]:
    """Processes whose parent is this one; none where there is no /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()  # what precedes is the name, which may hold anything
            if int(fields[1]) == parent:
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
