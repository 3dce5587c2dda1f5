"""Signals that stop a run after its step: Ctrl-C, and SIGTERM and SIGHUP of schedulers and terminals."""

import os
import signal
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handlers = Mapping[signal.Signals, Any]


@contextmanager
def ending(said: Callable[[int], None]) -> Iterator[None]:
    """End the process where SIGTERM or SIGHUP arrives in the block, with exit code 128 + n, unless it is handled there.

    It ends at once: an exception would be raised in the middle of an import, which may take it for a missing module.

    said: called first, with the number of the signal.
    """

    def end(number: int, frame: Any) -> None:
        said(number)
        os._exit(128 + number)

    wanted = [number for number in STOPPING[1:] if signal.getsignal(number) == signal.SIG_DFL]
    previous = {number: signal.signal(number, end) for number in wanted} if _in_main_thread() else {}
    try:
        yield
    finally:
        restore(previous)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class StopSignal:
    """Number of the first signal that asked the run to stop; 0 before. The second signal ends the process at once."""

    def __init__(self) -> None:
        self.number = 0

    def heed(self, local: bool = True) -> Handlers:
        """Handle the signals from now on, and return the previous handlers.

        local: also SIGTERM and SIGHUP, which Ray handles for its actors. SIGHUP stays ignored under nohup.
        """
        wanted = STOPPING if local else STOPPING[:1]
        heeded = [number for number in wanted if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
        return {number: signal.signal(number, self._on_signal) for number in heeded}

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.number:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.number = number
        if number == signal.SIGHUP:
            _leave_terminal()


@contextmanager
def passing_on(running: Collection[Popen[bytes]]) -> Iterator[list[int]]:
    """Send the signals that arrive in the block on to the processes that run, and yield the list of their numbers.

    The processes are sessions of their own, so that a terminal's Ctrl-C reaches each once.
    """
    arrived: list[int] = []

    def pass_on(number: int, frame: Any) -> None:
        arrived.append(number)
        for process in tuple(running):
            if process.poll() is None:
                process.send_signal(number)

    heeded = [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]
    previous = {number: signal.signal(number, pass_on) for number in heeded} if _in_main_thread() else {}
    try:
        yield arrived
    finally:
        restore(previous)


def restore(handlers: Handlers) -> None:
    """Restore the handlers that `StopSignal.heed` returned."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _leave_terminal() -> None:
    """Send output to /dev/null instead of a terminal, which is gone after SIGHUP: writing to it would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)
