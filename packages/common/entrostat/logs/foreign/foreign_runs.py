"""Runs in the log of another trainer, whichever kind of file it is.

(run,) = read_path("verl.log")
run.source                  "console output of verl or OpenRLHF"
run.metrics                 [{"step": 1, "entropy": .43, ...}, ...], as those of a run log
run.translated, run.kept    {"actor/entropy": "entropy", ...}, ["actor/mfu", ...]
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from textwrap import fill
from traceback import extract_tb
from typing import BinaryIO, NamedTuple

from ...settings.importing import Outside, distribution, plug_ins
from ..regular_file import require_file
from . import (
    console_lines,
    event_files,
    json_logs,
    markdown_tables,
    notebooks,
    printed_lines,
    unnumbered,
    wandb_offline,
    wandb_tables,
)
from .gathering import ForeignRun, gather
from .rows import HEAD, LimitedFile, Row
from .unwrapped import ENDING, unwrapped

MOST = 2**30
"""Upper limit for what is read of a file, bytes."""
STATE = "trainer_state.json"
CHECKPOINT = re.compile(r"checkpoint-(\d{1,15})")
ENDINGS = (".csv", ".parquet", ".jsonl", ".log", ".txt", ".out", ".wandb")
KNOWN = (
    "CSV, W&B's exports and offline runs, TensorBoard's event files, trainer_state.json of TRL, verl's "
    ".jsonl, the table of a notebook, tables in Markdown, the console output of verl, OpenRLHF, prime-rl, slime, TRL "
    "and ms-swift, and lines with an entropy that a trainer of one's own printed"
)
HELP = fill(
    f"Logs of other trainers are {KNOWN}; they may be packed by gzip. "
    "Their metrics get entrostat's names (docs/metrics.md).",
    79,
)
"""End of the help of a command that reads them."""


GROUP = "entrostat.logs"
"""Group of entry points that declare kinds of log, each a Kind, asked about files that no built-in one fits."""


class Kind(NamedTuple):
    """Kind of log."""

    title: str
    """Name in messages."""
    fits: Callable[[bytes], bool]
    """Takes the first bytes of a file, up to HEAD; returns True if it is of this kind."""
    read: Callable[[LimitedFile], Iterator[Row]]
    """Yields the steps of a file with their metrics, by the file's names. May raise a ValueError of one line."""
    note: str = ""
    """Sentence to tell with every log of this kind."""


EVENTS = Kind("event files of TensorBoard", event_files.is_events, event_files.read_events)
CONSOLE = Kind("console output of verl or OpenRLHF", console_lines.is_console, console_lines.read_console)
KINDS = (
    Kind("Parquet export of W&B", wandb_tables.is_parquet, wandb_tables.read_parquet),
    Kind("offline run of W&B", wandb_offline.is_offline, wandb_offline.read_offline),
    EVENTS,
    Kind("trainer_state.json of TRL", json_logs.is_state, json_logs.read_state),
    Kind("notebook", notebooks.is_notebook, notebooks.read_notebook),
    Kind("columns of JSON", json_logs.is_columns, json_logs.read_columns),
    Kind("data set", json_logs.is_data, json_logs.read_data),
    Kind("list of log_history", json_logs.is_history, json_logs.read_history),
    Kind("steps of JSON", json_logs.is_keyed, json_logs.read_keyed),
    Kind("lines of JSON, as verl's", json_logs.is_lines, json_logs.read_json_lines),
    Kind("CSV", wandb_tables.is_csv, wandb_tables.read_csv),
    CONSOLE,
    Kind("console output of prime-rl or slime", console_lines.is_newer_console, console_lines.read_console),
    Kind(
        "console output of TRL or ms-swift",
        console_lines.is_dictionaries,
        console_lines.read_dictionaries,
        "lines without a step are numbered; trainer_state.json has the steps",
    ),
    Kind("tables in Markdown", markdown_tables.is_markdown, markdown_tables.read_markdown),
    Kind("rows without steps", unnumbered.is_unnumbered, unnumbered.read_unnumbered, "rows are numbered from 1"),
    Kind("printed lines", printed_lines.is_printed, printed_lines.read_printed, "read by names and numbers alone"),
)


def read_path(path: str | Path, most: int = MOST) -> list[ForeignRun]:
    """Return the runs in a file, or in a folder of TensorBoard, W&B or TRL.

    Raises ValueError in one line if there are none, OSError if the file cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"{path} is not a run: there is no such file or folder")
    files = _files(path) if path.is_dir() else [path]
    for file in files:
        require_file(file)
    try:
        return read_files(files, most)
    except ValueError as error:
        raise ValueError(f"{path if len(files) > 1 else files[0]} {error}") from None


def name_of(path: str | Path) -> str:
    """Return a name for the run in a file or folder: of a trainer_state.json, that of the trainer's output folder."""
    full = Path(path).resolve()
    full = full.with_name(full.name.removesuffix(ENDING)) if full.is_file() else full
    if full.name != STATE:
        return full.name if full.is_dir() or is_event_file(full.name) else full.stem
    return full.parents[1 if CHECKPOINT.fullmatch(full.parent.name) else 0].name


def read_files(paths: Sequence[Path], most: int = MOST) -> list[ForeignRun]:
    """Return the runs in a file, or the one in several event files. Raises ValueError as `read_file` does."""
    if len(paths) > 1:
        return gather(EVENTS.title, lambda: chain.from_iterable(_events(path, most) for path in paths), False)
    with paths[0].open("rb") as file:
        return read_file(file if file.seekable() else BytesIO(file.read()), most)


def _events(path: Path, most: int) -> Iterator[Row]:
    with path.open("rb") as file:
        yield from EVENTS.read(LimitedFile(file, most))


def _files(folder: Path) -> list[Path]:
    """Return the files of the run in a folder: event files, W&B's offline run, or the newest trainer_state.json."""
    if events := sorted(path for path in folder.iterdir() if is_event_file(path.name)):
        return events
    if offline := sorted(folder.glob("*.wandb")):
        return offline[-1:]
    states = [folder / STATE, *newest_checkpoint(folder.glob(f"checkpoint-*/{STATE}"))]
    if there := [path for path in states if path.is_file()]:
        return there[:1]
    logs = sorted(path.name for path in folder.iterdir() if is_named_as_log(path.name))
    hint = f"name one of its files, such as {logs[0]}" if logs else f"logs of other trainers that can be read: {KNOWN}"
    raise ValueError(f"{folder} is not a run: it has no config.yaml; {hint}")


def newest_checkpoint(states: Iterable[Path]) -> list[Path]:
    """Return the trainer_state.json of the last checkpoint, which has the history of all before it; empty if none."""
    found = [(int(match[1]), path) for path in states if (match := CHECKPOINT.fullmatch(path.parent.name))]
    return [max(found)[1]] if found else []


def is_event_file(name: str) -> bool:
    return ".tfevents." in name


def is_named_as_log(name: str) -> bool:
    """Return True if a file's name is that of a log which could be imported."""
    return name == STATE or name.endswith(ENDINGS) or is_event_file(name)


def read_file(file: BinaryIO, most: int = MOST) -> list[ForeignRun]:
    """Return the runs in an open file that can seek.

    Raises ValueError in one line that begins with a verb: put the file's name before it.
    """
    file = unwrapped(file, most)
    head = file.read(HEAD)
    kind = _kind(head)
    if kind or _is_text(head):
        found = _runs(kind or CONSOLE, file, most)
        if found:
            return found
    if kind is None:
        more = "".join(f", {one.title}" for one in _plugged())
        raise ValueError(f"is no log that can be read; known are {KNOWN}{more}")
    raise ValueError(f"({kind.title}) has no metrics: take a log of a run that has finished a step")


def _runs(kind: Kind, file: BinaryIO, most: int) -> list[ForeignRun]:
    return gather(kind.title, lambda: kind.read(LimitedFile(file, most)), LimitedFile(file, most).cut, kind.note)


def runs_in(file: BinaryIO) -> list[str]:
    """Return the names of the runs at the start of a file, "" for its only one; an empty list if it is no log."""
    try:
        head = unwrapped(file, HEAD).read(HEAD)
    except ValueError:
        return []
    kind = _kind(head)
    if kind is None:
        return []
    if kind.read in (wandb_tables.read_parquet, json_logs.read_state):  # not readable in part
        return [""]
    try:
        return [run.name for run in _runs(kind, BytesIO(head), HEAD)]
    except ValueError:
        return [""]  # reading it says why it cannot be read


@lru_cache(maxsize=1)
def _plugged() -> tuple[Kind, ...]:
    """Return the kinds of installed plug-ins; a warning names one that cannot be imported or is no Kind."""
    found = []
    for entry in plug_ins(GROUP):
        place = Outside("kind of log", entry.name, f"{entry.module}:{entry.attr}", distribution(entry))
        try:
            kind = place.load()
            if not isinstance(kind, Kind):
                raise ValueError(f"{place} is a {type(kind).__name__}, not an entrostat.logs.foreign.foreign_runs.Kind")
        except ValueError as error:
            warnings.warn(f"{error}; logs of its kind are not read", stacklevel=2)
        else:
            found.append(_guarded(kind, place))
    return tuple(found)


def _guarded(kind: Kind, place: Outside) -> Kind:
    """Return a plug-in's kind, whose mistakes are told as its own and not as the file's."""

    def fits(head: bytes) -> bool:
        try:
            return bool(kind.fits(head))
        except Exception as error:
            warnings.warn(f"{place} cannot tell its files: {type(error).__name__}: {error}", stacklevel=2)
            return False

    def read(file: LimitedFile) -> Iterator[Row]:
        try:
            for row in kind.read(file):
                if not isinstance(row, Row):
                    raise TypeError(f"its reader yields a {type(row).__name__}, not a Row(run, step, metrics)")
                if isinstance(row.step, str) or any(isinstance(value, str) for value in row.metrics.values()):
                    raise TypeError(f"its reader yields text, where steps and metrics are numbers: {row}")
                yield row
        except Exception as error:
            last = extract_tb(error.__traceback__)[-1]
            where = "" if last.filename == __file__ else f" ({Path(last.filename).name}, line {last.lineno})"
            raise ValueError(f"cannot be read by the {place}: {type(error).__name__}: {error}{where}") from error

    return Kind(kind.title, fits, read)


def _kind(head: bytes) -> Kind | None:
    if own := next((kind for kind in KINDS if kind.fits(head)), None):
        return own
    return next((kind for kind in _plugged() if kind.fits(head)), None)


def _is_text(head: bytes) -> bool:
    return b"\0" not in head
