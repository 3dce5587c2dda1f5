"""Several ranks on this machine: the same command once for each, told apart by RANK, as under torchrun.

    llmtrain train --nproc 4 --engine.name deepspeed ...
    torchrun --nproc-per-node 4 -m llmtrain train --engine.name deepspeed ...       the same, and on several machines

Ctrl-C goes to all ranks, once each. When a rank is lost the others are ended, too.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GRACE = 3.0
"""Seconds that the other ranks have to end by themselves after one was lost."""
POLL = 0.1
"""Seconds between looks at the ranks."""
PARENT = "LLMTRAIN_PARENT"
"""Environment variable with the process that started a rank."""


def is_worker() -> bool:
    """Whether a launcher started this process as one of several, this one or torchrun."""
    return "RANK" in os.environ


def is_first() -> bool:
    """Whether this process speaks for all."""
    return int(os.environ.get("RANK", 0)) == 0


def world_size(nproc: int) -> int:
    """Ranks of the run: those a launcher started, or the `nproc` that are to be."""
    return int(os.environ["WORLD_SIZE"]) if is_worker() else nproc


def free_port() -> int:
    """A TCP port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpus() -> int:
    """Return how many CPUs this process may use: a scheduler may have limited them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_with_parent() -> None:
    """In a rank that `launch` started: end when that process is gone, however it went."""
    parent = int(os.environ.get(PARENT, 0))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)

    if parent:
        threading.Thread(target=watch, daemon=True).start()


def forget_shared_memory(environment: Mapping[str, Any]) -> None:
    """Unlink the memory through which DeepSpeed's ranks reduce on a CPU; environment: that of the rank whose it is.

    Ranks keep it as long as they live; DeepSpeed itself never unlinks it, and 66 MiB a rank would stay when they end.
    """
    place = "_".join(str(environment.get(name, "")) for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"))
    Path(f"/dev/shm/deepspeed_allreduce_buffer_{os.getuid()}_{place}").unlink(missing_ok=True)


class LostRankError(ValueError):
    """A rank was killed; the others were ended."""


def launch(command: list[str], nproc: int) -> int:
    """Run `llmtrain` with the arguments `command` as `nproc` ranks; exit code of the first that failed, or 0.

    Raises LostRankError naming the rank when one was killed.
    """
    common = {
        PARENT: os.getpid(),
        "WORLD_SIZE": nproc,
        "LOCAL_WORLD_SIZE": nproc,
        "LOCAL_SIZE": nproc,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", max(1, cpus() // nproc)),
    }
    ranks: list[subprocess.Popen] = []
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

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
                    [sys.executable, "-m", "llmtrain", *command],
                    env=os.environ | environment,
                    start_new_session=True,  # a terminal would send Ctrl-C a second time
                )
            )
        return _wait(ranks)
    finally:
        for process in ranks:
            process.kill()
            process.wait()
        for rank in range(nproc):
            forget_shared_memory(common | {"RANK": rank})  # they may have ended before they could
        for number, handler in previous.items():
            signal.signal(number, handler)


def _wait(ranks: list[subprocess.Popen]) -> int:
    """Wait for all ranks, or for one that fails and GRACE seconds more."""
    while not any(process.poll() for process in ranks):
        if all(process.poll() == 0 for process in ranks):
            return 0
        time.sleep(POLL)
    end = time.monotonic() + GRACE
    while time.monotonic() < end and any(process.poll() is None for process in ranks):
        time.sleep(POLL)
    failed = [(code, rank) for rank, process in enumerate(ranks) if (code := process.poll())]
    code, rank = min(failed)  # of one that was killed others only notice that it is gone
    if code < 0:
        raise LostRankError(f"rank {rank} was lost: killed by {signal.Signals(-code).name}")
    return code
