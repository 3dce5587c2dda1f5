"""Several ranks on this machine: one process per rank with the same command, distinguished by RANK, as under torchrun.

    llmtrain train --nproc 4 --engine.name deepspeed ...
    torchrun --nproc-per-node 4 -m llmtrain train --engine.name deepspeed ...       the same; also on several machines

Ctrl-C, SIGTERM and SIGHUP are sent to every rank once. If a rank is lost, the others are stopped too.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from .cores import cpus
from .stop_signals import STOPPING
from .text import signal_name

GRACE = 3.0
"""Seconds for the other ranks to end by themselves after one was lost."""
POLL = 0.1
"""Interval of checks on the ranks (seconds)."""
PORTS = range(20_000, 32_000)
"""Ports below the range of outgoing connections, which begins at 32,768 on Linux and higher on macOS."""
PARENT = "LLMTRAIN_PARENT"
"""Environment variable with the id of the process that started a rank."""
LEAVING = "LLMTRAIN_LEAVING"
"""Environment variable with the pipe in which a rank announces that it is about to end."""


def is_worker() -> bool:
    """Return True if a launcher, this one or torchrun, started this process as one of several."""
    return "RANK" in os.environ


def is_first() -> bool:
    """Return True on rank 0, or in a process on its own."""
    return int(os.environ.get("RANK", 0)) == 0


def world_size(nproc: int) -> int:
    """Return the number of ranks: as set by the launcher, or `nproc` if none has started this process."""
    return int(os.environ["WORLD_SIZE"]) if is_worker() else nproc


def free_port() -> int:
    """Return a free TCP port of this machine, outside the range from which outgoing connections take theirs.

    So no connection takes it before a server does. Raises OSError if there is none.
    """
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):  # taken
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port from {PORTS[0]} to {PORTS[-1]} is free")


def end_with_parent() -> None:
    """End this process as soon as the process that started it with `launch` has ended; no-op in other processes."""
    parent = int(os.environ.get(PARENT, 0))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)

    if parent:
        threading.Thread(target=watch, daemon=True).start()


def announce_end() -> None:
    """Tell `launch` that this rank ends by itself, after all its messages; no-op in other processes.

    A rank that ends without this call is lost, whatever its exit code.
    """
    if pipe := os.environ.get(LEAVING):
        with contextlib.suppress(OSError):  # the launcher was killed
            os.write(int(pipe), bytes([int(os.environ["RANK"])]))


def how_it_ended(code: int) -> str:
    """Return the end of a process in words; code: its exit code, or minus the number of the signal that killed it."""
    if code >= 0:
        return f"it ended with exit code {code}"
    return f"killed by {signal_name(-code) or f'signal {-code}'}"


class LostRankError(ValueError):
    """Error after a rank was lost; the other ranks have been stopped."""


def launch(command: list[str], nproc: int) -> int:
    """Run `llmtrain` with the arguments `command` as `nproc` ranks; see `run_ranks`."""
    return run_ranks([sys.executable, "-m", "llmtrain", *command], nproc)


def run_ranks(command: list[str], nproc: int) -> int:
    """Run a command as `nproc` ranks; return the exit code of one that failed, or 0.

    Raises LostRankError if a rank was killed or ended without `announce_end`; the message names it.
    """
    heard, leaving = os.pipe()
    os.set_blocking(heard, False)
    common = {
        PARENT: os.getpid(),
        LEAVING: leaving,
        "WORLD_SIZE": nproc,
        "LOCAL_WORLD_SIZE": nproc,
        "LOCAL_SIZE": nproc,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", max(1, cpus() // nproc)),
    }
    ranks: list[subprocess.Popen] = []
    previous = {number: signal.getsignal(number) for number in STOPPING}

    def pass_on(number: int, frame: Any) -> None:
        for process in ranks:
            if process.poll() is None:
                process.send_signal(number)

    for number in previous:
        signal.signal(number, pass_on)
    try:
        for rank in range(nproc):
            environment = {key: str(value) for key, value in (common | {"RANK": rank, "LOCAL_RANK": rank}).items()}
            ranks.append(
                subprocess.Popen(
                    command,
                    env=os.environ | environment,
                    pass_fds=[leaving],
                    start_new_session=True,  # a terminal would send Ctrl-C a second time
                )
            )
        return _wait(ranks, heard)
    finally:
        for process in ranks:
            process.kill()
            process.wait()
        for number, handler in previous.items():
            signal.signal(number, handler)
        for descriptor in (heard, leaving):
            os.close(descriptor)


def _wait(ranks: list[subprocess.Popen], heard: int) -> int:
    """Wait for all ranks, or until GRACE seconds after one has failed; return the exit code, see `run_ranks`.

    heard: pipe in which ranks announce their end.
    """
    announced, lost, end = set[int](), dict[int, int](), float("inf")
    while True:
        codes = [process.poll() for process in ranks]
        with contextlib.suppress(BlockingIOError):  # empty
            announced |= {*os.read(heard, 4096)}  # after the poll: a rank announces its end before it
        for rank, code in enumerate(codes):
            if code is not None and (code < 0 or rank not in announced):
                lost.setdefault(rank, code)
        if (lost or any(codes)) and end == float("inf"):
            end = time.monotonic() + GRACE
        if None not in codes or time.monotonic() > end:
            break
        time.sleep(POLL)
    for rank, code in lost.items():  # the first; others may have been lost because of it
        raise LostRankError(f"rank {rank} was lost: {how_it_ended(code)}")
    return min((code for code in codes if code), default=0)
