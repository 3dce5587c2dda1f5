"""Runs from the rows of a log: which rows belong together, and metrics under entrostat's names.

rows ─► runs told apart (rows, told_apart) ─► processes of a run merged (writers) ─► starts (starts) ─► names, units
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..runlog import trained_steps
from .left_out import LeftOut
from .metric_names import candidates, translate
from .rows import Row
from .starts import Run, Starts
from .told_apart import TextColumns, text_of
from .units import in_nats, nats, told
from .writers import PROCESS, Line, Written, merged, runs_of

MOST_NAMES = 1000
"""Upper limit for the metrics of a run."""
LONGEST_NAME = 300
MOST_TOLD = 3
"""Upper limit for the metrics that a note names."""
MOST_RUNS = 100
"""Upper limit for the runs in a file."""
LARGEST_STEP = 2**53 - 1


@dataclass(frozen=True)
class ForeignRun:
    """Run of another trainer."""

    name: str
    """Name within the file; empty in a file of one run."""
    source: str
    """Kind of file."""
    metrics: list[dict[str, Any]]
    """Metrics of each step, in order; `step` comes first, then metrics with a name of entrostat.

    None: NaN or infinite. A step whose row has nothing but blanks has no metrics.
    """
    translated: dict[str, str]
    """entrostat's names of metrics, by the file's."""
    kept: list[str]
    """Metrics that keep their names, because entrostat has none for them."""
    notes: tuple[str, ...] = ()
    """Parts of the file that were left out, merged or chosen, a sentence each."""

    def told(self) -> str:
        """Return in one line what was read, and which names changed."""
        changed = ", ".join(f"{theirs} → {ours}" for theirs, ours in self.translated.items() if theirs != ours)
        parts = [f"{self.source}, {trained_steps(self.metrics)} steps", f"renamed: {changed or 'none'}"]
        parts.append(f"kept under their own names: {', '.join(self.kept) or 'none'}")
        return "; ".join([*parts, *self.notes])


class Gathered:
    """Rows of a log, by run, and what was left out of them.

    A row without a run belongs to that of the row before it, as an evaluation may. by: columns of text that name runs.
    """

    def __init__(self, rows: Iterable[Row], by: Sequence[str] = ()) -> None:
        self.runs: dict[str, list[Written]] = {}
        self.names: dict[str, dict[str, None]] = {}
        self.columns: dict[str, TextColumns] = {}
        self.left = LeftOut()
        self.by = by
        run, apart = "", True
        for row in rows:
            if not _is_step(row.step):
                if not row.metrics or any(map(_is_number, row.metrics.values())):
                    self.left.add_step(row.step)
                continue
            run = (self._name(row) or run) if apart else ""
            if run not in self.runs and len(self.runs) == MOST_RUNS and self._are_steps():
                self._join()
                run, apart = "", False
            if run not in self.runs and len(self.runs) == MOST_RUNS:
                self.left.more += 1
                continue
            line = _line(row, self.names.setdefault(run, {}), self.left)
            if line is not None:
                self.runs.setdefault(run, []).append((row.writer, int(row.step), line))
                self.columns.setdefault(run, TextColumns()).add(int(row.step), row.metrics)
        if self._are_steps():
            self._join()
        for name in [*self.runs]:
            if found := runs_of(self.runs[name]):
                self._divide(name, found)

    def _divide(self, name: str, found: Mapping[str, list[Written]]) -> None:
        """Let the drivers of a run be runs of their own."""
        del self.runs[name]
        names, columns = self.names.pop(name), self.columns.pop(name)
        for driver, rows in found.items():
            called = f"{name}, {driver}" if name else driver
            self.runs[called], self.names[called], self.columns[called] = rows, names, columns

    def _name(self, row: Row) -> str:
        found = [text for name in self.by if (text := text_of(name, row.metrics.get(name)))]
        return ", ".join([row.run, *found] if row.run else found)

    def _are_steps(self) -> bool:
        """Return True if what seemed to name runs, such as a seed, changes with the step."""
        steps = [step for rows in self.runs.values() for step in {step for _, step, _ in rows}]
        return len(self.runs) > 2 and len(steps) == len(self.runs) == len(set(steps))

    def _join(self) -> None:
        """Let the runs be one."""
        self.runs = {"": [*chain.from_iterable(self.runs.values())]}
        self.names = {"": dict.fromkeys(chain.from_iterable(self.names.values()))}

    def started(self) -> dict[str, tuple[list[Run], tuple[str, ...]]]:
        """Return, for each name, the runs that follow one another, and the processes whose mean they are."""
        made = {}
        for name, rows in self.runs.items():
            found, starts = merged(rows), Starts()
            for step, line in found.rows:
                starts.add(step, line)
            made[name] = [run for run in starts.runs() if any(run.steps.values())][:MOST_RUNS], found.writers
        return made


def gather(title: str, read: Callable[[], Iterable[Row]], cut: bool, note: str = "") -> list[ForeignRun]:
    """Return the runs of a log, without those that have no metrics. Later rows of a step replace earlier ones.

    title, note: kind of file, and what to tell with it. read: starts to read the rows, once more if a column of text
    tells runs apart. cut: True if only the beginning of the file is read. Raises ValueError if no metric can be read.
    """
    rows = Gathered(read())
    runs = rows.started()
    if by := _dividing(rows, runs):
        divided = Gathered(read(), by)
        if len(apart := divided.started()) > len(runs) and _replaced(apart) <= _replaced(runs):
            rows, runs = divided, apart
    left, notes = rows.left, [note] if note else []
    notes += left.notes(set().union(*rows.names.values()))
    if left.more:
        notes.append(f"only the first {MOST_RUNS} runs and {MOST_NAMES} metrics of each are read")
    if cut:
        notes.append("only the beginning of the file is read, because it is too large")
    if rows.by:
        notes.append(f"runs are told apart by {' and '.join(rows.by)}")
    made = []
    for name, (found, writers) in runs.items():
        for number, one in enumerate(found, 1):
            several = [f"run {number} of {len(found)} that follow one another"] if len(found) > 1 else []
            several += [_merged(writers)] if writers else []
            called = name if number == 1 else f"{name}, run {number}" if name else f"run {number}"
            made.append(_run(called, title, one, rows.names[name], (*notes, *several)))
    if not made and (reason := left.reason()):
        raise ValueError(f"({title}) {reason}")
    return made


def _dividing(rows: Gathered, runs: Mapping[str, tuple[list[Run], Any]]) -> tuple[str, ...]:
    """Return the columns of text that tell apart what seems to be one run; empty if there are none."""
    found = (
        columns.dividing(conflicts=len(runs[name][0]) > 1 or any(run.replaced for run in runs[name][0]))
        for name, columns in rows.columns.items()
        if name in runs
    )
    return next(filter(None, found), ())


def _replaced(runs: Mapping[str, tuple[list[Run], Any]]) -> int:
    """Return how many values others replaced at the same step."""
    return sum(sum(run.replaced.values()) for found, _ in runs.values() for run in found)


def _merged(writers: Sequence[str]) -> str:
    first, last = (one.removeprefix(f"{PROCESS} ") for one in (writers[0], writers[-1]))
    return f"{len(writers)} processes wrote the same steps ({first} to {last}): the mean over them counts"


def _line(row: Row, known: dict[str, None], left: LeftOut) -> Line | None:
    """Return the numbers of a row, None for one that is NaN or infinite; None for a row without numbers and blanks.

    known: names of the run's metrics, to which those of the row are added.
    """
    line: Line = {}
    blank = False
    for name, value in row.metrics.items():
        if name in ("", "step") or name.startswith("_") or len(name) > LONGEST_NAME:
            continue
        blank |= value is None
        if isinstance(value, str):
            left.add_text(name, value, int(row.step))
        lost = type(value) is float and not math.isfinite(value)
        if not lost and not _is_number(value):
            continue
        if name not in known and len(known) == MOST_NAMES:
            left.more += 1
            continue
        known[name] = None
        line[name] = None if lost else value
    return line if line or blank else None


def _run(name: str, source: str, run: Run, names: Iterable[str], notes: tuple[str, ...]) -> ForeignRun:
    there = [name for name in names if any(name in line for line in run.steps.values())]
    translated = translate(there)
    kept = [name for name in there if name not in translated]
    ours = {name: translated.get(name, name) for name in (*translated, *kept)}
    nats_of = {theirs: nats(theirs) for theirs, here in translated.items() if here == "entropy"}
    metrics = [
        {"step": step, **{here: in_nats(line[old], nats_of.get(old, 1.0)) for old, here in ours.items() if old in line}}
        for step, line in sorted(run.steps.items())
    ]
    return ForeignRun(name, source, metrics, translated, kept, (*notes, *_notes(run), *_chosen(translated, kept)))


def _chosen(translated: Mapping[str, str], kept: Collection[str]) -> Iterator[str]:
    """Yield what is to be known of the entropy that was chosen: its unit, and the metrics that it was chosen from."""
    entropy = next((theirs for theirs, ours in translated.items() if ours == "entropy"), None)
    if entropy is None:
        return
    if converted := told({"entropy": entropy}):
        yield converted
    if others := candidates("entropy", kept):
        more = f" or {len(others) - MOST_TOLD} others" if len(others) > MOST_TOLD else ""
        yield (
            f"the entropy is {entropy}, and not {', '.join(others[:MOST_TOLD])}{more}: --entropy NAME reads another one"
        )


def _notes(run: Run) -> Iterator[str]:
    """Yield what is odd about the steps of a run, a sentence each."""
    if run.repeated:
        yield f"steps {run.repeated[0]} to {run.repeated[1]} were taken again: the later ones count"
    if run.replaced:
        most = sorted(run.replaced.items(), key=lambda one: -one[1])[:MOST_TOLD]
        told = ", ".join(f"{name} at {count} step{'s' * (count > 1)}" for name, count in most)
        more = f" and {len(run.replaced) - len(most)} other metrics" if len(run.replaced) > len(most) else ""
        yield f"taken again at the same step, so that the later value counts: {told}{more}"
    if empty := sorted(step for step, line in run.steps.items() if not line):
        yield f"{len(empty)} steps have no number at all ({empty[0]} to {empty[-1]})"


def _is_number(value: Any) -> bool:
    """Return True if the value is a finite number."""
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


def _is_step(value: Any) -> bool:
    """Return True if the value is a whole number that a step can have."""
    return _is_number(value) and abs(value) <= LARGEST_STEP and int(value) == value
