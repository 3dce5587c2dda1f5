"""Complaints about settings, all in one message: who starts a run should be stopped once."""

from collections.abc import Iterable


def raise_all(complaints: Iterable[str]) -> None:
    """Raise ValueError with these complaints, each once; one alone is a line. No-op without any."""
    found = list(dict.fromkeys(complaints))
    if found:
        raise ValueError(found[0] if len(found) == 1 else "\n- ".join([f"{len(found)} settings cannot work:", *found]))
