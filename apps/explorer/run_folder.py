"""The folder of run logs that may be read, and nothing outside it.

root = folder()                      the allowed folder
names(root)                          its runs, such as demo/grpo
inside(root, name, "config.yaml")    a path in it; ValueError when it leads elsewhere
config(root, name)                   plain values only
"""

import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from .launch import RUNS

DEPTH = 4
"""Folders between the root and a run, at most."""
MOST_RUNS = 500
MOST_ENTRIES = 20_000
"""Entries of folders that are looked at while searching for runs."""
LARGEST_TEXT = 2**20
"""Bytes of a config.yaml or a manifest.json."""
MOST_VALUES = 100_000
"""Values of a configuration."""
SKIPPED = ("checkpoints", "models")
"""Folders inside which no run is searched for."""
HOUSEKEEPING = ("out", "overwrite", "threads", "save_every")
"""Configuration keys that change no number."""
SEEDS = ("seed", "seeds")


def folder() -> Path:
    """The allowed folder, from the environment; `runs` in the working directory otherwise."""
    return Path(os.environ.get(RUNS, "runs")).resolve()


def inside(root: Path, *parts: str) -> Path:
    """The real path of root/parts. ValueError, one line, when it does not exist or lies outside `root`."""
    name = "/".join(parts)
    shown = repr(name if len(name) <= 80 else f"{name[:77]}…")
    if "\0" in name or "\\" in name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"{shown} is not the name of a run: give a path inside the folder of runs, such as demo/grpo")
    real = root.resolve()
    try:
        path = (real / name).resolve(strict=True)
    except (OSError, RuntimeError):
        raise ValueError(
            f"{shown} is not in the folder of runs: choose another, or start the app with --runs"
        ) from None
    if not path.is_relative_to(real):
        raise ValueError(f"{shown} leads out of the folder of runs: put the run itself there instead of a link")
    return path


def file(root: Path, name: str, part: str) -> Path | None:
    """The regular file `part` of a run; None when there is none. ValueError when either leads out of `root`."""
    if not os.path.lexists(inside(root, name) / part):
        return None
    path = inside(root, name, part)
    return path if stat.S_ISREG(path.stat().st_mode) else None


def names(root: Path) -> list[str]:
    """Runs in `root`, as paths relative to it: at most MOST_RUNS, DEPTH deep. Links are not followed."""
    budget = [MOST_ENTRIES]
    return sorted(_search(root, "", DEPTH, budget), key=_natural)[:MOST_RUNS] if root.is_dir() else []


def _search(root: Path, name: str, depth: int, budget: list[int]) -> Iterator[str]:
    try:
        with os.scandir(root / name) as entries:
            found = [entry for entry, _ in zip(entries, range(budget[0]), strict=False)]
    except OSError:  # removed in the meantime, or not ours to read
        return
    budget[0] -= len(found)
    if {"config.yaml", "metrics.jsonl"} <= {entry.name for entry in found}:
        yield name or "."
    if depth == 0:
        return
    for entry in sorted(found, key=lambda entry: entry.name):
        if entry.name not in SKIPPED and not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            yield from _search(root, f"{name}/{entry.name}" if name else entry.name, depth - 1, budget)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts run-2 before run-10."""
    digits = "".join(c if c.isdigit() else " " + c + " " for c in name).split()
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in digits]


def newest(root: Path, known: Sequence[str], count: int) -> list[str]:
    """The run that was written to last, with others of its folder: at most `count`, newest first, empty ones last."""

    def age(name: str) -> tuple[bool, float]:
        try:
            found = (root / name / "metrics.jsonl").lstat()
        except OSError:  # removed in the meantime
            return True, 0.0
        return found.st_size == 0, -found.st_mtime

    order = sorted(known, key=age)
    beside = [name for name in order if PurePosixPath(name).parent == PurePosixPath(order[0]).parent]
    return beside[:count]


def config(root: Path, name: str) -> Mapping[str, Any]:
    """The configuration of a run. ValueError, one line, when it cannot be read."""
    text = _text(root, name, "config.yaml")
    try:
        return _parsed(text)
    except ValueError as error:
        raise ValueError(f"{name}/config.yaml {error}") from None


@lru_cache(maxsize=128)
def _parsed(text: str) -> Mapping[str, Any]:
    """YAML of plain values; it takes ten milliseconds."""
    try:
        found = yaml.safe_load(text) if text else {}
    except yaml.YAMLError as error:
        raise ValueError(f"is not plain YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"must be a mapping of keys, not a {type(found).__name__}")
    if sum(1 for _ in islice(_values(found), MOST_VALUES)) == MOST_VALUES:
        raise ValueError(f"holds more than {MOST_VALUES:,} values: it is no run log's")
    return {str(key): value for key, value in found.items()}


def _values(value: Any) -> Iterator[Any]:
    """Every value inside, those that an alias repeats once more for each time."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ()
    for item in inner:
        yield from _values(item)


def command(root: Path, name: str) -> str | None:
    """The command that made a run, without the place of its program; None when the manifest does not tell.

    ValueError, one line, when the run is not in `root`.
    """
    text = _text(root, name, "manifest.json") or "{}"
    try:
        words = json.loads(text)["command"]
        return shlex.join([PurePosixPath(words[0]).name, *words[1:]])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def _text(root: Path, name: str, part: str) -> str:
    path = file(root, name, part)
    if path is None:
        return ""
    if path.stat().st_size > LARGEST_TEXT:
        raise ValueError(f"{name}/{part} is larger than {LARGEST_TEXT // 2**20} MiB: it is no run log's")
    return path.read_text(encoding="utf-8", errors="replace")


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value}
    return found


def experiment(values: Mapping[str, Any]) -> str:
    """What two runs have in common that differ by seed only."""
    rest = {key: value for key, value in values.items() if key not in (*HOUSEKEEPING, *SEEDS)}
    return json.dumps(rest, sort_keys=True, default=str)


def differences(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Configuration keys whose values differ between runs: by key, each run's value as text, – for none at all."""
    every = {name: flat(values) for name, values in configs.items()}
    keys = dict.fromkeys(key for values in every.values() for key in values if key not in HOUSEKEEPING)
    table = {key: {name: _shown(values.get(key)) for name, values in every.items()} for key in keys}
    return {key: row for key, row in table.items() if len(set(row.values())) > 1}


def _shown(value: Any) -> str:
    return "–" if value is None or value == {} else str(value)
