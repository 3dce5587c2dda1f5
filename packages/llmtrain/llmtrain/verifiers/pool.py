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

from .own_error import OwnError
from .verdict import Verdict
from .verifier import Verifier

IMPORT_SECONDS = 300.0
"""Time limit for a keeper to import its check."""
GRACE_SECONDS = 30.0
"""Time beyond the timeout of an item after which a keeper without a reply is replaced."""
LEAVE_SECONDS = 1.0
"""Time for a keeper to exit by itself before it is killed."""
CRASH = {"failure": "crash", "correct": False, "reason": "the check ended its process", "extracted": None}
"""Reply to an item whose keeper ended."""


class Keeper:
    """Process that runs one check at a time, and its connection."""

    def __init__(self, check: str, timeout: float, memory_mib: int) -> None:
        ours, theirs = Pipe()
        path = ["", *sys.path]  # the script `llmtrain` does not search the working directory
        settings = {"check": check, "timeout": timeout, "memory_mib": memory_mib, "path": path}
        command = [sys.executable, "-m", "llmtrain.verifiers.worker", str(theirs.fileno())]
        fixed = {
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",  # sets have the same order in each run
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
        """Send `message`; no-op if the keeper has ended: its connection then reads as closed."""
        try:
            self.connection.send_bytes(json.dumps(message).encode())
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> Any:
        """Return the next message, or None if the keeper has ended."""
        try:
            return json.loads(self.connection.recv_bytes())
        except (EOFError, ConnectionResetError, OSError):
            return None

    def close(self) -> None:
        """End the process and its children: close the connection, then kill what has not exited."""
        self.connection.close()
        try:
            self.process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class CheckPool(Verifier):
    """Verifier that runs `check` in `workers` processes; for one caller at a time.

    Args:
        check: Import path `module:function` of a function (response, ground_truth) -> bool or Verdict, which may also
            have a parameter `question`; the module may be in the working directory.
        workers: Number of checks at a time.
        timeout: Seconds of wall time for one item; after that its process is killed and the item counts as wrong.
        memory_mib: MiB that a check may allocate beyond those that its import took.

    Raises:
        ValueError: if `check` cannot be imported, and for a ground truth that JSON cannot encode.
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
        """Raise ValueError unless the keeper can run the check."""
        answered = keeper.connection.poll(IMPORT_SECONDS)
        hello = keeper.receive() if answered else None
        if hello != "ready":
            self.close()
            problem = hello or ("importing it ended the process" if answered else "importing it takes too long")
            raise ValueError(f"cannot use the check {self.check!r}: {problem}")

    def judge(self, responses: Sequence[str], ground_truths: Sequence[Any]) -> list[Verdict]:
        """Return one verdict for each pair, in order."""
        return self.judge_asked(responses, ground_truths, [""] * len(responses))

    def judge_asked(
        self, responses: Sequence[str], ground_truths: Sequence[Any], questions: Sequence[str]
    ) -> list[Verdict]:
        """Return one verdict for each pair, in order; a check with a parameter `question` receives its question."""
        for i, truth in enumerate(ground_truths):
            _require_json(i, truth)
        replies = self.ask([list(row) for row in zip(responses, ground_truths, questions, strict=True)])
        for reply in replies:
            if reply["failure"]:
                self.failures[reply["failure"]] += 1
        return [
            Verdict(reply["correct"], reply["reason"], reply["extracted"], undecided=reply["failure"] == "undecided")
            for reply in replies
        ]

    def ask(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the reply to each item, see `worker`, in order; fast items do not wait for slow ones."""
        if not self._keepers:
            raise ValueError("this verifier is closed")
        replies: dict[int, dict[str, Any]] = {}
        todo = deque(range(len(items)))
        idle, busy = list(self._keepers), dict[Connection, tuple[Keeper, int]]()
        while todo or busy:
            while todo and idle:
                keeper, i = idle.pop(), todo.popleft()
                keeper.send(items[i])
                busy[keeper.connection] = keeper, i
            ready = wait(list(busy), self.timeout + GRACE_SECONDS)
            heard = [connection for connection in busy if connection in ready]
            for connection in heard or list(busy):
                keeper, i = busy.pop(connection)
                reply = keeper.receive() if heard else None
                idle.append(keeper if reply else self._replace(keeper))
                replies[i] = reply or dict(CRASH)
                if not self.errors and (raised := replies[i].get("raised")):
                    self.errors.append(OwnError(*raised))
        return [replies[i] for i in range(len(items))]

    def _replace(self, keeper: Keeper) -> Keeper:
        """Return a new keeper in place of one that ended or does not reply."""
        keeper.close()
        new = self._start()
        self._keepers[self._keepers.index(keeper)] = new
        self._await_import(new)
        return new

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
