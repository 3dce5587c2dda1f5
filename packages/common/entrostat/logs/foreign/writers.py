"""Rows that several processes of one run wrote, each a row for every step: their mean is the run's.

    found = merged([("rank 0", 1, {"loss": 0.2}), ("rank 1", 1, {"loss": 0.4}), ...])
    found.rows         [(1, {"loss": 0.3}), ...]
    found.writers      ("rank 0", "rank 1")

Ranks are told by a column or by what stands before a line. The process of Ray and the machine may also change when a
run is resumed, so that two of them count as processes of one run only if their rows alternate. Drivers of verl whose
rows alternate are runs that share a console.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .rows import NODES

Line = dict[str, float | None]
"""Metrics of a row. None: no number."""
Written = tuple[str, int, Line]
"""Row with its process, "" if it does not say, and its step."""
PROCESS = "pid"
DRIVERS = (f"{PROCESS} TaskRunner ", f"{PROCESS} main_task ")
"""Beginnings of the processes of verl that log a run. A run has one at a time."""


class Merged(NamedTuple):
    """Rows of one run in their order, with the processes whose mean was taken; none if nothing was merged."""

    rows: list[tuple[int, Line]]
    writers: tuple[str, ...] = ()


def merged(rows: Sequence[Written]) -> Merged:
    """Return the rows of a run, with the mean over processes that wrote the same metrics of the same steps."""
    found, averaged = list[tuple[int, Line]](), dict[str, None]()
    for part in _stretches(rows):
        writers = dict.fromkeys(writer for writer, _, _ in part)
        if len(writers) > 1 and _are_shared(part):
            found += _means(part)
            averaged |= writers
        else:
            found += [(step, line) for _, step, line in part]
    return Merged(found, tuple(averaged))


def runs_of(rows: Sequence[Written]) -> dict[str, list[Written]]:
    """Return the rows of each run by its driver, if drivers wrote a console together; empty if it is of one run."""
    drivers = [[row for row in part if row[0].startswith(DRIVERS)] for part in _stretches(rows)]
    if not any(len({writer for writer, _, _ in part}) > 1 and _are_shared(part) for part in drivers):
        return {}
    found: dict[str, list[Written]] = {}
    for row in rows:
        found.setdefault(row[0].removeprefix(f"{PROCESS} "), []).append(row)
    return found


def _stretches(rows: Sequence[Written]) -> list[Sequence[Written]]:
    """Return the rows in parts, each by processes that ran together."""
    steps: dict[str, list[int]] = {}
    for writer, step, _ in rows:
        steps.setdefault(writer, []).append(step)
    kinds = {writer.partition(" ")[0] for writer in steps}
    same = PROCESS not in kinds and len({frozenset(some) for some in steps.values()}) == 1
    if len(steps) < 2 or same or not kinds & {PROCESS, *NODES}:
        return [rows]
    last = {writer: at for at, (writer, _, _) in enumerate(rows)}
    parts, start, end = list[Sequence[Written]](), 0, -1
    for at, (writer, _, _) in enumerate(rows):
        if at > end >= 0:
            parts.append(rows[start:at])
            start = at
        end = max(end, last[writer])
    return [*parts, rows[start:]]


def _are_shared(rows: Iterable[Written]) -> bool:
    """Return True if two processes have a metric of the same step."""
    first: dict[tuple[int, str], str] = {}
    return any(first.setdefault((step, name), writer) != writer for writer, step, line in rows for name in line)


def _means(rows: Iterable[Written]) -> list[tuple[int, Line]]:
    """Return the means over processes; a metric that one of them has lost is lost.

    A step that a process takes again, as a resumed one does, is a step of its own.
    """
    taken = Counter[tuple[str, int, str]]()
    slots: dict[tuple[int, int], dict[str, list[float | None]]] = {}
    for writer, step, line in rows:
        time = max((taken[writer, step, name] for name in line), default=0)
        slot = slots.setdefault((step, time), {})
        for name, value in line.items():
            slot.setdefault(name, []).append(value)
            taken[writer, step, name] = time + 1
    return [(step, {name: _mean(values) for name, values in slot.items()}) for (step, _), slot in slots.items()]


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(values) if len(there) == len(values) else None
