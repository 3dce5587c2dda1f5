"""Complaints about settings, all in one message: who starts a run should be stopped once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_POSTPONED = ContextVar("postponed", default=False)


_EACH = "\n- "


def raise_all(complaints: Iterable[str]) -> None:
    """Raise ValueError with these complaints, each once; one alone is a line. No-op without any.

    Messages of this function count as the complaints that they hold.
    """
    found = list(dict.fromkeys(one for told in complaints for one in told.split(_EACH)[1:] or [told]))
    if found and not _POSTPONED.get():
        raise ValueError(found[0] if len(found) == 1 else _EACH.join([f"{len(found)} settings cannot work:", *found]))


@contextmanager
def postponed() -> Iterator[None]:
    """Let settings contradict each other in a block: flags that are read later may mend what a file says.

    The caller checks what comes out, with all other complaints.
    """
    before = _POSTPONED.set(True)
    try:
        yield
    finally:
        _POSTPONED.reset(before)
