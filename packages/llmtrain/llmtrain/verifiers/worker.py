"""Process behind a CheckPool: import a check, fork a process that runs it, kill that process after a timeout.

Started as `python -m llmtrain.verifiers.worker FD`, with a connection to the pool at the file descriptor FD.
"""

import contextlib
import ctypes
import importlib
import inspect
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from ..process.text import signal_name
from .own_error import told
from .scoring import scored
from .verdict import Verdict

MAX_SHOWN = 1000
"""Upper limit for characters of `extracted` and `reason` that are sent back."""
PR_SET_PDEATHSIG = 1
_NUMPY_BOOLS = ("bool", "bool_")
"""Names of NumPy's bool type, old and new."""

Check = Callable[..., "bool | Verdict"]


class Checker:
    """Fork of this process, in its own process group, that answers one item after the other."""

    def __init__(self, check: Check, memory_mib: int, pool: Connection) -> None:
        self.connection, theirs = Pipe()
        keeper = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.connection.close()
                pool.close()
                os.setsid()
                _die_with(keeper)
                _limit_memory(memory_mib)
                _answer(theirs, check)
            finally:
                os._exit(0)
        theirs.close()

    def ask(self, item: bytes, timeout: float, pool: Connection) -> bytes | None:
        """Return the reply to `item`, or None if the process ended instead.

        Raises:
            TimeoutError: if there is no reply after `timeout` seconds.
            EOFError: if the pool closes the connection before that.
        """
        try:
            self.connection.send_bytes(item)
            ready = wait([self.connection, pool], timeout)
            if self.connection in ready:
                return self.connection.recv_bytes()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return None
        raise EOFError if ready else TimeoutError

    def end(self) -> str:
        """Kill the process and its children; return its exit code or signal as text."""
        self.connection.close()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self.pid, signal.SIGKILL)  # before setsid, or ended and not yet reaped
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return signal_name(-status) or f"exit code {status}"


def _die_with(keeper: int) -> None:
    """End this process when the keeper ends, for any reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(0)


def _limit_memory(mib: int) -> None:
    """Limit this process to `mib` MiB more than it has now."""
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + mib * 2**20, now + mib * 2**20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(connection: Connection, check: Check) -> None:
    """Answer items until the connection ends."""
    asks = _takes_question(check)
    while True:
        try:
            item = json.loads(connection.recv_bytes())
        except EOFError:
            return
        reply = scored(check, item) if isinstance(item, dict) else _run(check, asks, *item)
        connection.send_bytes(json.dumps(reply).encode())


def _takes_question(check: Check) -> bool:
    """Return True if a check has a parameter `question`."""
    try:
        return "question" in inspect.signature(check).parameters
    except (TypeError, ValueError):  # a built-in function may have no signature
        return False


def _run(check: Check, asks: bool, response: str, truth: Any, question: str = "") -> dict[str, Any]:
    """Return the reply to one item; asks: the check takes the question too."""
    try:
        return _reply(check(response, truth, question=question) if asks else check(response, truth))
    except Exception as error:  # a user's check may raise anything; only its item fails
        found = told(error, check)
        return failure("error", f"the check raised {found.line}") | {"raised": found}


def _reply(found: Any) -> dict[str, Any]:
    """Return the result of a check as the message to send."""
    if isinstance(found, bool) or type(found).__name__ in _NUMPY_BOOLS:
        found = Verdict(bool(found), "correct" if found else "wrong")
    if not isinstance(found, Verdict):
        return failure("error", f"the check returned {type(found).__name__}, not a bool or a Verdict")
    extracted = None if found.extracted is None else str(found.extracted)[:MAX_SHOWN]  # may be a number
    reason = str(found.reason)[:MAX_SHOWN]
    lost = "undecided" if found.undecided else None
    return {"correct": bool(found.correct) and not lost, "reason": reason, "extracted": extracted, "failure": lost}


def failure(kind: str, reason: str) -> dict[str, Any]:
    """Return the reply to an item that could not be checked; `kind` is timeout, crash or error."""
    return {"correct": False, "reason": reason[:MAX_SHOWN], "extracted": None, "failure": kind}


def load(path: str) -> Check:
    """Return the function at `module:function`.

    Raises:
        ValueError: if there is none.
    """
    module, _, name = path.partition(":")
    try:
        check = importlib.import_module(module)
        for part in name.split("."):
            check = getattr(check, part)
    except Exception as error:  # importing a user's module runs its code
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not callable(check):
        raise ValueError(f"{name} is not a function")
    return check


def serve(pool: Connection) -> None:
    """Answer the pool's items until it closes the connection."""
    settings = json.loads(pool.recv_bytes())
    sys.path[:] = settings["path"]
    try:
        check = load(settings["check"])
    except ValueError as error:
        return pool.send_bytes(json.dumps(str(error)).encode())
    checker = Checker(check, settings["memory_mib"], pool)
    pool.send_bytes(b'"ready"')
    while True:
        try:
            reply = checker.ask(pool.recv_bytes(), settings["timeout"], pool)
            lost = None if reply else ("crash", "the check ended its process: ")
        except (EOFError, ConnectionResetError):
            checker.end()
            return None
        except TimeoutError:
            reply, lost = None, ("timeout", f"timed out after {settings['timeout']:g} s")
        if lost:
            end = checker.end()
            reply = json.dumps(failure(lost[0], lost[1] + (end if lost[0] == "crash" else ""))).encode()
            checker = Checker(check, settings["memory_mib"], pool)
        assert reply is not None
        pool.send_bytes(reply)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the pool has gone
        serve(Connection(int(sys.argv[1])))
