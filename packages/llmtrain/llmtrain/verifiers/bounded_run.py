"""Run a process whose program nobody trusts: bounded in time and output, and ended with its process group."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

POLL = 0.02
"""Interval of checks on a process that has closed its output, or left it open to another one (seconds)."""
AT_A_TIME = 1 << 16
"""Bytes read at a time."""


@dataclass(frozen=True)
class Ended:
    """End of a process."""

    exit_code: int | None
    """Exit code; None if the process was killed at a limit."""
    flooded: bool
    """True if the limit was that of the output."""
    out: str
    """End of its output, without trailing white space."""
    err: str
    """End of its error output."""


def run_bounded(command: Sequence[str], *, timeout: float, most: int, keep: int, **settings: Any) -> Ended:
    """Run a command, kill its process group at the end, and return how it ended.

    The outputs are pipes, so a file that the program puts in their place is never read. timeout: seconds. most: bytes
    of output after which the process is killed. keep: bytes at the end of each output to return. settings: further
    arguments of Popen.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **settings,
    )
    assert process.stdout
    assert process.stderr
    with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        ends = {process.stdout: bytearray(), process.stderr: bytearray()}
        for pipe in ends:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        total, limit = 0, time.monotonic() + timeout
        try:
            while (left := limit - time.monotonic()) > 0 and total <= most:
                ended = process.poll() is not None  # before reading: what it wrote is then all in the pipes
                ready = selector.select(0 if ended else min(left, POLL))
                for key, _ in ready:
                    content = os.read(key.fd, AT_A_TIME)
                    if not content:
                        selector.unregister(key.fileobj)
                    total += len(content)
                    kept = ends[key.fileobj]  # type: ignore[index]
                    kept += content
                    del kept[:-keep]
                if ended and not ready:
                    break
                if not selector.get_map():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(left)
            code = process.poll()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    out, err = (bytes(end).decode(errors="replace").rstrip() for end in ends.values())
    return Ended(code, code is None and total > most, out, err)
