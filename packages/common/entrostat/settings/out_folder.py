"""Output folders of commands: one writer at a time, and nothing goes that a command did not write."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

LOCK = ".lock"
"""Lock file of a folder, held by the process that writes there."""


@contextmanager
def lock_folder(out: str | Path, what: str = "writes") -> Iterator[None]:
    """Hold the lock of a folder, created if missing, until the block or the process ends.

    what: verb for the error message. Raises ValueError if another process holds it or the folder is not writable.
    """
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        lock = (Path(out) / LOCK).open("a")
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror}; choose another folder") from None
    with lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike a lock of flock, no fork inherits it
        except BlockingIOError:
            raise ValueError(f"another process {what} in {out}") from None
        except OSError:
            pass  # a file system without locks
        yield


def check_own(folder: str | Path, patterns: Sequence[str]) -> None:
    """Raise ValueError if a folder contains a name that matches none of the patterns, such as "step-*"."""
    names = sorted(path.name for path in Path(folder).glob("*"))
    others = [name for name in names if not any(fnmatch(name, pattern) for pattern in (LOCK, *patterns))]
    if others:
        raise ValueError(
            f"{folder} contains {others[0]}, which this command did not write and will not remove: "
            "choose another --out, or move it away"
        )
