"""Checks in killable processes: a hung or crashing check costs its own item only.

    CheckPool ──item──> keeper ──item──> checker (fork of the keeper)
              <─reply──        <─reply──

A keeper (worker.py) imports the check once and forks the process that runs it. It kills that process when an item
takes too long and forks another within milliseconds, without a second import. Messages are JSON: what comes out of a
checker is data, never code.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from .verdict import Verdict
from .verifier import Verifier

IMPORT_SECONDS = 300.0
"""A keeper that has not imported its check by then is given up."""
GRACE_SECONDS = 30.0
"""A keeper that is silent for this long beyond the timeout of an item is replaced."""

LEAVE_SECONDS = 1.0
"""A keeper has this long to leave by itself."""


class Keeper:
    """A process that runs one check at a time, and its connection."""

    def __init__(self, check: str, timeout: float, memory_mib: int) -> None:
        ours, theirs = Pipe()
        path = ["", *sys.path]  # a check may lie in the working directory, which the script `llmtrain` does not look in
        settings = {"check": check, "timeout": timeout, "memory_mib": memory_mib, "path": path}
        command = [sys.executable, "-m", "llmtrain.verifiers.worker", str(theirs.fileno())]
        fixed = {
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",  # a check that goes through a set gives the same verdict in each run
        }
        self.process = subprocess.Popen(
            command,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | fixed,
        )
        theirs.close()
        self.connection: Connection = ours
        self.send(settings)

    def send(self, message: Any) -> None:
        """Send `message`; to a keeper that is gone, nothing: its connection then reads as ended."""
        try:
            self.connection.send_bytes(json.dumps(message).encode())
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> Any:
        """The next message; None from a keeper that is gone."""
        try:
            return json.loads(self.connection.recv_bytes())
        except (EOFError, ConnectionResetError, OSError):
            return None

    def close(self) -> None:
        """End the process and what it started: it goes when its connection does, and is killed when it does not."""
        self.connection.close()
        try:
            self.process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class CheckPool(Verifier):
    """A verifier that runs `check` in `workers` processes; for one caller at a time.

    Args:
        check: import path `module:function` of a function (response, ground_truth) -> bool or Verdict; the module may
            lie in the working directory.
        workers: checks at a time.
        timeout: seconds of wall time for one item; after that its process is killed and the item counts as wrong.
        memory_mib: MiB that a check may allocate beyond what importing it took.

    Raises:
        ValueError: when `check` cannot be imported, and for a ground truth that JSON cannot carry.
    """

    def __init__(self, check: str, *, workers: int = 2, timeout: float = 5.0, memory_mib: int = 1024) -> None:
        super().__init__()
        self.check, self.timeout, self.memory_mib = check, timeout, memory_mib
        self._keepers = [self._start() for _ in range(workers)]
        for keeper in self._keepers:
            self._await_import(keeper)

    def _start(self) -> Keeper:
        return Keeper(self.check, self.timeout, self.memory_mib)

    def _await_import(self, keeper: Keeper) -> None:
        """Raises ValueError when the keeper cannot run the check."""
        answered = keeper.connection.poll(IMPORT_SECONDS)
        hello = keeper.receive() if answered else None
        if hello != "ready":
            self.close()
            problem = hello or ("importing it ended the process" if answered else "importing it takes too long")
            raise ValueError(f"cannot use the check {self.check!r}: {problem}")

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        """One verdict for each pair, in order; the fastest checks do not wait for the slowest."""
        if not self._keepers:
            raise ValueError("this verifier is closed")
        for i, truth in enumerate(ground_truths):
            _require_json(i, truth)
        verdicts: list[Verdict | None] = [None] * len(responses)
        todo = deque(range(len(responses)))
        idle, busy = list(self._keepers), dict[Connection, tuple[Keeper, int]]()
        while todo or busy:
            while todo and idle:
                keeper, i = idle.pop(), todo.popleft()
                keeper.send([responses[i], ground_truths[i]])
                busy[keeper.connection] = keeper, i
            ready = wait(list(busy), self.timeout + GRACE_SECONDS)
            heard = [connection for connection in busy if connection in ready]
            for connection in heard or list(busy):
                keeper, i = busy.pop(connection)
                reply = keeper.receive() if heard else None
                idle.append(keeper if reply else self._replace(keeper))
                verdicts[i] = self._verdict(reply)
        return [verdict for verdict in verdicts if verdict]

    def _replace(self, keeper: Keeper) -> Keeper:
        """A new keeper in the place of one that is gone or silent."""
        keeper.close()
        new = self._start()
        self._keepers[self._keepers.index(keeper)] = new
        self._await_import(new)
        return new

    def _verdict(self, reply: dict[str, Any] | None) -> Verdict:
        if reply is None:
            reply = {"failure": "crash", "correct": False, "reason": "the check ended its process", "extracted": None}
        if reply["failure"]:
            self.failures[reply["failure"]] += 1
        return Verdict(reply["correct"], reply["reason"], reply["extracted"])

    def close(self) -> None:
        """End all processes."""
        for keeper in self._keepers:
            keeper.close()
        self._keepers = []


def _require_json(i: int, truth: Any) -> None:
    try:
        json.dumps(truth)
    except (TypeError, ValueError) as error:
        raise ValueError(f"ground truth {i} cannot be sent to a check: {error}") from None
