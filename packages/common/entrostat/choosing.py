"""Entries of a registry chosen on a command line: by name, or by a part of the name."""

import fnmatch
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")


def choose(known: Mapping[str, Entry], names: Collection[str], pattern: str, *, kind: str, listed: str) -> list[Entry]:
    """Return the entries with these names or with `pattern` in their name (* and ? as in a shell); without both, all.

    kind: kind of the entries, for messages. listed: where or what the names are, likewise.

    Raises ValueError on an unknown name, with near ones, and if no name has the pattern.
    """
    for name in names:
        if name not in known:
            near = get_close_matches(name, known)
            raise ValueError(f"unknown {kind} {name!r}; " + (f"did you mean {' or '.join(near)}?" if near else listed))
    matching = fnmatch.filter(known, f"*{pattern}*") if pattern else []
    if pattern and not matching:
        raise ValueError(f"no {kind} has {pattern!r} in its name; {listed}")
    chosen = {*names, *matching} or known
    return [entry for name, entry in known.items() if name in chosen]
