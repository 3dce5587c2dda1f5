"""Run a command with a time limit, and kill all of its processes at the end.

    python -m llmtrain.doctor.guard SECONDS COMMAND ARGUMENT...

Exit code: the command's own, 128 + n if signal n killed it, 124 if it exceeded SECONDS. All descendants of the command
are killed, even after they left its session or lost their parent (only on Linux; elsewhere its process group).
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
"""prctl(2) option: descendants of this process that lose their parent become its children."""
TIME_UP = 124
POLL = 0.05
"""Seconds between checks of the command."""
PATIENCE = 3.0
"""Upper limit for the wait until killed processes are gone (seconds)."""


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
    """Kill the process group, then all children until none is left: this process inherits the children of each."""
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
    """Return the children of a process; empty without /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()  # the name before it may contain anything
            if int(fields[1]) == parent:
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
