"""Units in the names of metrics: entropies in bits become nats.

unit("actor/entropy_bits")         Unit("bits", 0.693, "actor/entropy")
unit("actor/entropy")              None
"""

import re
from collections.abc import Mapping
from math import log
from typing import NamedTuple

BETWEEN = r"(?:^|[\s_/.-]+)"
UNIT = re.compile(
    BETWEEN + r"[(\[]?(?:in[\s_]+)?(?:(?P<nats>nats?)|(?P<bits>bits?|shannons?|log_?2|base_?2)"
    r"|(?P<hartleys>bans?|dits?|hartleys?|log_?10|base_?10))[)\]]?(?=$|[\s_/.-])",
    re.IGNORECASE,
)
NATS = {"nats": 1.0, "bits": log(2), "hartleys": log(10)}
"""Nats of one, by unit."""
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
PRECISION = re.compile(r"\d[\s_-]*bits?", re.IGNORECASE)
"""Part of a name that is no unit, as of weights of 8 bits."""


class Unit(NamedTuple):
    """Unit that the name of a metric has in it."""

    name: str
    nats: float
    """Nats of one."""
    plain: str
    """Name without it."""


def unit(name: str) -> Unit | None:
    """Return the unit in a metric's name; None if it has none."""
    spaced = HUMP.sub("_", name)
    found = None if PRECISION.search(name) else UNIT.search(spaced)
    if not found:
        return None
    (called,) = (kind for kind, text in found.groupdict().items() if text)
    return Unit(called, NATS[called], UNIT.sub("", spaced, count=1).strip("/_. -"))


def nats(name: str) -> float:
    """Return the nats of one of a metric's units, by its name; 1 if that has none."""
    return found.nats if (found := unit(name)) else 1.0


def in_nats(value: float | None, unit: float) -> float | None:
    """Return a value in nats; None for None. unit: nats of one."""
    return value if value is None or unit == 1 else value * unit


def told(named: Mapping[str, str]) -> str:
    """Return which metrics were converted, by entrostat's names, in a sentence; empty if none was."""
    parts = [
        f"{theirs} is in {found.name} by its name: its values are times {found.nats:.3f}, in nats"
        for theirs in named.values()
        if (found := unit(theirs)) and found.nats != 1
    ]
    return "; ".join(parts)
