"""Watcher that ends the processes below this one if this one is killed. Linux only: elsewhere a no-op.

Some of Ray's processes outlive a driver that was killed by a minute.

    python family.py        watches its parent, and ends what is left of its family once it is gone
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

POLL = 1.0
"""Interval of looks at the processes (seconds)."""
GRACE = 2.0
"""Seconds for them to end by themselves."""


@contextmanager
def ends_with_family() -> Iterator[None]:
    """Run a block; if this process is killed meanwhile, its children and theirs end within POLL + GRACE seconds."""
    if sys.platform != "linux":
        yield
        return
    watcher = subprocess.Popen([sys.executable, "-I", __file__], start_new_session=True, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and start time of each running process, by its id."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            state, parent, *rest = file.read_text().rpartition(")")[2].split()
            if state != "Z":
                found[int(file.parent.name)] = int(parent), rest[17]
    return found


def family(of: int) -> dict[int, str]:
    """Return the start times of all processes below another one, without this one, by their ids."""
    running = processes()
    found, new = dict[int, str](), {of}
    while new:
        new = {pid for pid, (parent, _) in running.items() if parent in new and pid != os.getpid()}
        found |= {pid: running[pid][1] for pid in new}
    return found


def left_of(known: dict[int, str]) -> dict[int, str]:
    """Return those of the known processes that still run; another may have the same id, not the same start time."""
    running = processes()
    return {pid: started for pid, started in known.items() if pid in running and running[pid][1] == started}


def main() -> None:
    parent, known = os.getppid(), dict[int, str]()
    while os.getppid() == parent:
        known = family(parent) | left_of(known)  # some may have lost the process between
        time.sleep(POLL)
    time.sleep(GRACE)
    for pid in left_of(known):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
