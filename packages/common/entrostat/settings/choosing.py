"""Entries chosen on a command line by name or by a part of the name, and what a wrong name may have meant."""

import fnmatch
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")
PART = 3
"""Letters from which on a part of a name counts as near to it."""
NEAR = 3
"""Upper limit for the near names that a message has."""


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that `name` may have meant, at most NEAR, whatever their case."""
    names, said = {one.lower(): one for one in known}, name.lower()
    close = get_close_matches(said, names, n=NEAR) or [one for one in names if len(said) >= PART and said in one]
    return [names[one] for one in close[:NEAR]]


def unknown(kind: str, name: str, known: Iterable[str], listed: str = "", word: str = "") -> str:
    """Return a message for a name that is not known: near names, or else all of them, or `listed` in their place.

    word: the name as the message shows it; in quotes by default.
    """
    names = list(known)
    close = near(name, names)
    told = f"did you mean {' or '.join(close)}?" if close else listed or f"choose from {', '.join(names)}"
    return f"unknown {kind} {word or repr(name)}; {told}"


def choose(known: Mapping[str, Entry], names: Collection[str], pattern: str, *, kind: str, listed: str) -> list[Entry]:
    """Return the entries with these names or with `pattern` in their name (* and ? as in a shell); without both, all.

    kind: kind of the entries, for messages. listed: where or what the names are, likewise.

    Raises ValueError on an unknown name, with near ones, and if no name has the pattern.
    """
    for name in names:
        if name not in known:
            raise ValueError(unknown(kind, name, known, listed))
    matching = fnmatch.filter(known, f"*{pattern}*") if pattern else []
    if pattern and not matching:
        raise ValueError(f"no {kind} has {pattern!r} in its name; {listed}")
    chosen = {*names, *matching} or known
    return [entry for name, entry in known.items() if name in chosen]
