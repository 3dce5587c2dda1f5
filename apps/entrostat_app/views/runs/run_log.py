"""Run logs for the page: metrics as columns, samples one at a time. Files are read once, then only their new lines.

log = read(root, "demo/grpo")
log.metrics["entropy"]          Series: steps (n,), values (seeds, n)
samples(root, "demo/grpo", 12)  the responses of step 12, or of the last step before it that has any
"""

import json
import math
import re
import threading
import time
import zipfile
from array import array
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from entrostat.logs.foreign.foreign_runs import ForeignRun

from ...shared import run_folder
from .follow import Follower

Array = NDArray[np.float64]

MOST_METRICS = 64 * 2**20
"""Upper limit for a metrics.jsonl, bytes; the rest is not read."""
MOST_SAMPLES = 2**30
MOST_ARRAYS = 256 * 2**20
"""Upper limit for an unpacked trajectory.npz, bytes."""
MOST_KEYS = 500
"""Upper limit for the metrics of a run."""
QUIET = 120.0
"""Seconds without a new line after which an unfinished run counts as stopped."""
KEPT = 64
"""Upper limit for files kept in memory."""
LARGEST = 2**53 - 1
"""Largest step: beyond it, floats and browsers cannot distinguish neighbouring integers."""


class Series(NamedTuple):
    """Metric of a run."""

    step: Array
    """Steps, (n,)."""
    values: Array
    """Values, (seeds, n); one row unless the run holds several seeds."""


@dataclass(frozen=True)
class Log:
    """Configuration, metrics and state of a run."""

    name: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Series]
    """Metrics by name, in the order of their first appearance."""
    state: str
    """One of done, running, stopped, empty and imported."""
    notes: tuple[str, ...] = ()
    """Warnings to show beside the run's pictures, a sentence each."""
    foreign: ForeignRun | None = None
    """Run of another trainer that this log was made from; None for a run log."""

    @property
    def last_step(self) -> int:
        """Last logged step; -1 before the first line."""
        return max((int(series.step[-1]) for series in self.metrics.values()), default=-1)


@dataclass
class _Metrics:
    """Columns of a metrics.jsonl read so far."""

    follower: Follower
    columns: dict[str, tuple[array, array]] = field(default_factory=dict)
    unreadable: int = 0
    """Number of lines that are not metrics."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self) -> dict[str, Series]:
        """Read the new lines; return copies of the columns."""
        with self.lock:
            if self.follower.begins_anew():
                self.columns.clear()
                self.unreadable = 0
            for _, line in self.follower.lines():
                self._add(_record(line))
            return {k: Series(np.array(step), np.array(values)[None]) for k, (step, values) in self.columns.items()}

    def _add(self, record: dict[str, Any] | None) -> None:
        step = None if record is None else record.pop("step", None)
        if record is None or not _is_number(step) or abs(step) > LARGEST:
            self.unreadable += 1
            return
        for key, value in record.items():
            if not _is_number(value):
                continue
            column = self.columns.get(key)
            if column is None:
                if len(self.columns) == MOST_KEYS:
                    continue
                column = self.columns[key] = array("d"), array("d")
            column[0].append(step)
            column[1].append(value)


@dataclass
class _Samples:
    """Offsets and lengths of the lines of a samples.jsonl, by step."""

    follower: Follower
    places: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self) -> dict[int, list[tuple[int, int]]]:
        with self.lock:
            if self.follower.begins_anew():
                self.places.clear()
            for place, line in self.follower.lines():
                found = re.match(rb'\{"step": (\d{1,15})[,}]', line)
                step = int(found[1]) if found else (_record(line) or {}).get("step")
                if type(step) is int and abs(step) <= LARGEST:
                    self.places.setdefault(step, []).append((place, len(line)))
            return {step: list(places) for step, places in self.places.items()}


_open_files: OrderedDict[Path, Any] = OrderedDict()
_lock = threading.Lock()


def _kept(path: Path, make: Any) -> Any:
    """Return the reader of a file: the existing one if there is one, otherwise a new one."""
    with _lock:
        if path not in _open_files:
            _open_files[path] = make()
        _open_files.move_to_end(path)
        while len(_open_files) > KEPT:
            _open_files.popitem(last=False)
        return _open_files[path]


def read(root: Path, name: str) -> Log:
    """Return the log of the run `name`. Raises ValueError in one line if it is not in `root` or cannot be read."""
    path = run_folder.file(root, name, "metrics.jsonl")
    config = run_folder.config(root, name)
    if path is None:
        return Log(name, config, {}, "empty")
    kept: _Metrics = _kept(path, lambda: _Metrics(Follower(path, MOST_METRICS)))
    notes = []
    metrics = kept.update()
    if kept.follower.cut:
        last = max((int(series.step[-1]) for series in metrics.values()), default=-1)
        size = MOST_METRICS // 2**20
        notes.append(f"{name} is shown up to step {last}: only the first {size} MiB of its metrics.jsonl are read.")
    if kept.unreadable:
        notes.append(
            f"{name}: {kept.unreadable} lines of its metrics.jsonl are not JSON objects with a step: left out."
        )
    try:
        metrics |= _seeds(root, name, config, metrics)
    except ValueError as error:
        notes.append(f"{name} is shown without its seeds: {error}.")
    return Log(name, config, metrics, _state(config, metrics, abs(time.time() - kept.follower.changed)), tuple(notes))


def _state(config: Mapping[str, Any], metrics: Mapping[str, Series], age: float) -> str:
    last = max((int(series.step[-1]) for series in metrics.values()), default=-1)
    total = config.get("steps", config.get("rollouts"))
    if isinstance(total, int) and last >= total - 1:
        return "done"
    return "running" if age < QUIET else "stopped" if metrics else "empty"


def _seeds(root: Path, name: str, config: Mapping[str, Any], metrics: Mapping[str, Series]) -> dict[str, Series]:
    """Return the metrics with values per seed in trajectory.npz, if that file belongs to these metrics."""
    path, manifest = (run_folder.file(root, name, part) for part in ("trajectory.npz", "manifest.json"))
    seeds = config.get("seeds")
    if path is None or not isinstance(seeds, list) or len(seeds) < 2:
        return {}
    if manifest is not None and path.stat().st_mtime_ns < manifest.stat().st_mtime_ns:
        return {}  # left over from an earlier run
    return {
        key: Series(metrics[key].step, values[:, columns])
        for key, values in _arrays(path).items()
        if key in metrics
        and values.shape[0] == len(seeds)
        and (columns := _columns(metrics[key].step, values.shape[1])) is not None
    }


def _columns(step: Array, count: int) -> NDArray[np.int64] | None:
    """Return the columns of the steps (n,); None if a step is not one of the `count` columns."""
    columns = step.astype(np.int64)
    return columns if ((columns == step) & (columns >= 0) & (columns < count)).all() else None


def _arrays(path: Path) -> dict[str, Array]:
    """Return the arrays (seeds, n) of a trajectory.npz."""
    stamp = path.stat().st_mtime_ns, path.stat().st_size
    kept: dict[Any, dict[str, Array]] = _kept(path, dict)
    if stamp not in kept:
        kept.clear()
        kept[stamp] = _load_arrays(path)
    return kept[stamp]


def _load_arrays(path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(info.file_size for info in packed.infolist()) > MOST_ARRAYS:
                raise ValueError(f"trajectory.npz is larger than {MOST_ARRAYS // 2**20} MiB")
        with np.load(path, allow_pickle=False) as arrays:
            found = {key: arrays[key] for key in arrays.files}
    except ValueError:
        raise
    except Exception:  # what zipfile, zlib and numpy raise on damaged files is not documented
        raise ValueError("trajectory.npz cannot be read") from None
    numbers = {key: x for key, x in found.items() if isinstance(x, np.ndarray) and x.dtype.kind in "fiu"}
    return {key: np.asarray(x, np.float64) for key, x in numbers.items() if x.ndim == 2}


def sample_steps(root: Path, name: str) -> dict[int, list[tuple[int, int]]]:
    """Return offset and length, in bytes, of the samples in a run's samples.jsonl, by step in ascending order."""
    path = run_folder.file(root, name, "samples.jsonl")
    if path is None:
        return {}
    kept: _Samples = _kept(path, lambda: _Samples(Follower(path, MOST_SAMPLES)))
    return dict(sorted(kept.update().items()))


def samples(root: Path, name: str, step: int) -> list[dict[str, Any]]:
    """Return the samples of the last step at or before `step` that has any."""
    steps = sample_steps(root, name)
    at = [known for known in steps if known <= step]
    path = run_folder.file(root, name, "samples.jsonl")
    if not at or path is None:
        return []
    found = []
    with path.open("rb") as file:
        for place, length in steps[at[-1]]:
            file.seek(place)
            record = _record(file.read(length))
            if record is None:
                raise ValueError(f"{name}/samples.jsonl: a line of step {at[-1]} is not a JSON object")
            found.append({key: _told(value) for key, value in record.items()})
    return found


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a line; None if there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _told(value: Any) -> Any:
    """Return a value of a sample, with None in place of numbers that are not finite or too large."""
    if isinstance(value, list):
        return [None if type(x) in (int, float) and not _is_number(x) else x for x in value]
    return None if type(value) in (int, float) and not _is_number(value) else value


def _is_number(value: Any) -> TypeGuard[float]:
    """Return True if the value, as parsed from JSON, is a finite number."""
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is int and abs(value) < 2**63
