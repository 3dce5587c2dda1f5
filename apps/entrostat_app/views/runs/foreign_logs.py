"""Logs of other trainers on the page: files in the folder of runs, and files that the user drops.

read(root, "trl/trainer_state.json")    the log of a file in the folder
drop()                                  the place to drop files; names of the runs just dropped
dropped()                               their logs, by name

A file with several runs, such as a chart of W&B, has a name for each: `chart.csv::run-7`. The event files of a folder
are one run, named by the folder.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import streamlit as st

from entrostat.logs.foreign import foreign_runs
from entrostat.logs.foreign.foreign_runs import ForeignRun

from ...shared import run_folder
from ...shared.plain_text import plain
from .run_log import LARGEST, MOST_KEYS, MOST_METRICS, Log, Series

IMPORTED = "imported"
"""State of a run from another trainer's log."""
DROPPED = "runs.dropped"
"""Session key: logs of dropped files by name."""
SEEN = "runs.seen"
"""Session key: for each dropped file that was read, why it has no runs; empty if it has."""
MOST_DROPPED = 16
"""Upper limit for dropped runs in a session; the oldest are forgotten."""
MARK = " (dropped)"
"""End of the name of a dropped run."""


def read(root: Path, name: str) -> Log:
    """Return the log of a run in another trainer's file. Raises ValueError in one line if it cannot be read."""
    path, _, run = name.partition(run_folder.OF_A_FILE)
    folder = run_folder.inside(root, path)
    if folder.is_dir():
        parts = [(path, part.name) for part in folder.iterdir() if foreign_runs.is_event_file(part.name)]
    else:
        whole = PurePosixPath(path)
        parts = [(str(whole.parent), whole.name)]
    files = [found for place in sorted(parts) if (found := run_folder.file(root, *place)) is not None]
    if not files:
        raise ValueError(f"{path} has no log: choose another run")
    stamps = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    try:
        there = {found.name: found for found in _runs(stamps)}
    except ValueError as error:
        raise ValueError(f"{path} {error}") from None
    if run not in there:
        raise ValueError(f"{path} has no run {run!r}" if run else f"{path} holds several runs: choose one of them")
    return log(name, there[run])


@lru_cache(maxsize=8)
def _runs(stamps: tuple[tuple[str, int, int], ...]) -> list[ForeignRun]:
    """Return the runs in some files, given with their time and size; cached, because reading takes long."""
    return foreign_runs.read_files([Path(name) for name, _, _ in stamps], MOST_METRICS)


def log(name: str, run: ForeignRun) -> Log:
    """Return a run of another trainer as a log of the page."""
    columns: dict[str, tuple[list[int], list[float]]] = {}
    for line in run.metrics:
        for key, value in line.items():
            if key != "step" and abs(line["step"]) <= LARGEST and (key in columns or len(columns) < MOST_KEYS):
                steps, values = columns.setdefault(key, ([], []))
                steps.append(line["step"])
                values.append(value)
    metrics = {
        key: Series(np.array(steps, np.float64), np.array(values, np.float64)[None])
        for key, (steps, values) in columns.items()
    }
    notes = tuple(f"{name}: {note}." for note in run.notes)
    return Log(name, {IMPORTED: run.source}, metrics, IMPORTED, notes, run)


# Dropped files ----------------------------------------------------------------------------------------------------


def drop() -> list[str]:
    """Draw the place to drop files; return the names of the runs that were dropped just now."""
    box = st.popover("Bring your own run", icon=":material/upload_file:")
    with box:
        files = st.file_uploader(
            "Logs of other trainers",
            accept_multiple_files=True,
            key="runs.files",
            max_upload_size=MOST_METRICS // 2**20,
        )
        st.caption(plain(f"{foreign_runs.KNOWN}. They stay on this machine, until the tab is closed."))
    new, seen = [], st.session_state.setdefault(SEEN, {})
    for file in files:
        if file.file_id not in seen:
            try:
                new += _keep(file.name, foreign_runs.read_file(file, MOST_METRICS))
                seen[file.file_id] = ""
            except ValueError as error:
                seen[file.file_id] = f"{file.name} {error}"
        if seen[file.file_id]:
            box.error(plain(seen[file.file_id]))
    return new


def dropped() -> Mapping[str, Log]:
    """Return the logs of dropped files by name."""
    found: Mapping[str, Log] = st.session_state.get(DROPPED, {})
    return found


def _keep(file: str, runs: Sequence[ForeignRun]) -> list[str]:
    """Keep the runs of a dropped file for this session; return their names."""
    kept = st.session_state.setdefault(DROPPED, {})
    names = []
    for run in runs[:MOST_DROPPED]:
        base = f"{file}{run_folder.OF_A_FILE}{run.name}" if run.name else file
        unique = next(text for n in count(1) if (text := f"{base}{f' {n}' * (n > 1)}{MARK}") not in kept)
        kept[unique] = log(unique, run)
        names.append(unique)
    while len(kept) > MOST_DROPPED:
        del kept[next(iter(kept))]
    return names


# Names ------------------------------------------------------------------------------------------------------------


def draw_names(logs: Collection[Log]) -> None:
    """Draw which metrics of imported runs have a name of entrostat, and which keep their own."""
    runs = {log.name: log.foreign for log in logs if log.foreign is not None}
    if not runs:
        return
    for name, run in runs.items():
        renamed = f"{len(run.translated)} metrics have entrostat's names, {len(run.kept)} keep their own"
        st.caption(plain(f"{name}: {run.source}; {renamed}."))
    with st.expander("Names of the imported metrics", icon=":material/translate:", key="runs.names"):
        st.dataframe(table(runs), hide_index=True, key="runs.names.table")


def table(runs: Mapping[str, ForeignRun]) -> pd.DataFrame:
    """Return a row for each metric of imported runs: its name in the file, and here."""
    rows = [
        {"run": name, "in the file": theirs, "here": run.translated.get(theirs, "kept: no metric of entrostat")}
        for name, run in runs.items()
        for theirs in (*run.translated, *run.kept)
    ]
    return pd.DataFrame(rows)
