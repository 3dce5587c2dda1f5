"""Roll call: ranks say where they are once one of them has waited too long for the others.

A rank whose collective timed out puts a file into the folder of the run; a thread of every rank looks for it and writes
what its main thread is doing. A rank that is in a collective waits as well; one that is elsewhere, or does not answer,
is the one that the others wait for.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALL, HERE = ".roll-call", ".here-{}"
"""Files of a call and of the answers."""
LOOK, PATIENCE = 0.5, 3.0
"""Seconds between two looks for a call, and seconds allowed for answers."""
WAITS = "waits"
"""Answer of a rank in a collective."""
COLLECTIVES = (os.path.join("torch", "distributed"), os.path.join("deepspeed", "comm"), __file__)
"""Parts of the names of files in whose functions a rank waits for others."""
LIBRARIES = ("site-packages", os.path.dirname(os.__file__))
TIMED_OUT = ("Timed out waiting", "Application timeout", "timed out after", "wait timeout after")
"""Words of an error of a collective that waited too long, by gloo and NCCL."""


@contextmanager
def answering(folder: str | Path, rank: int, size: int) -> Iterator[None]:
    """Answer calls from a thread while the block runs; no-op in a process on its own."""
    if size == 1:
        yield
        return
    place, end, main = Path(folder), threading.Event(), threading.get_ident()
    for name in (CALL, HERE.format(rank)):
        (place / name).unlink(missing_ok=True)

    def look() -> None:
        while not end.wait(LOOK):
            if (place / CALL).exists():
                write(place / HERE.format(rank), where(main))
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()


def where(thread: int) -> str:
    """Return what a thread is doing: `waits` in a collective, else its last function outside libraries."""
    frames = traceback.extract_stack(sys._current_frames()[thread])
    if any(library in frame.filename for frame in frames for library in COLLECTIVES):
        return WAITS
    own = [frame for frame in frames if not any(library in frame.filename for library in LIBRARIES)]
    last = (own or frames)[-1]
    return f"is in {last.name} ({Path(last.filename).name}, line {last.lineno})"


def write(file: Path, text: str) -> None:
    """Write a file that nobody can read half."""
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def missing(error: Exception, folder: str | Path, rank: int, size: int, limit: float) -> str:
    """Return which ranks keep this one waiting if its collective timed out, else "".

    limit: seconds that it waited.
    """
    if size == 1 or not any(words in str(error) for words in TIMED_OUT):
        return ""
    place = Path(folder)
    write(place / CALL, "")
    others = [other for other in range(size) if other != rank]
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not all((place / HERE.format(other)).exists() for other in others):
        time.sleep(LOOK / 5)
    found = {}
    for other in others:
        file = place / HERE.format(other)
        found[other] = file.read_text() if file.exists() else "does not answer"
    late = [f"rank {other} {said}" for other, said in found.items() if said != WAITS]
    those = "; ".join(late) or "all of them wait, in different collectives"
    return f"the ranks waited longer than engine.ddp_timeout {limit:g} s for each other: {those}"
