"""The folder of run logs that may be read, and nothing outside it.

root = folder()                      the allowed folder
names(root)                          its runs, such as demo/grpo
recent(root, names)                  those that can be chosen: the newest MOST_RUNS
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

from entrostat.plain_yaml import parse_yaml

from ...launch import RUNS

DEPTH = 4
"""Folders between the root and a run, at most."""
MOST_RUNS = 500
"""Runs that can be chosen."""
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
PROGRAMS = ("toybandit", "llmtrain")
"""Packages whose commands make runs."""


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
    """Runs in `root`, as paths relative to it, DEPTH deep at most. Links are not followed.

    ValueError, one line, when `root` cannot be read.
    """
    try:
        os.scandir(root).close()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ValueError(f"the folder of runs cannot be read: {error.strerror}") from None
    return sorted(_search(root, "", DEPTH, [MOST_ENTRIES]), key=_natural)


def recent(root: Path, found: Sequence[str]) -> list[str]:
    """Of the runs found, in their order, the MOST_RUNS that were written to last."""
    if len(found) <= MOST_RUNS:
        return list(found)
    kept = set(_by_age(root, found)[:MOST_RUNS])
    return [name for name in found if name in kept]


def problem(root: Path, name: str, found: Sequence[str]) -> str:
    """Why a run cannot be chosen, one line. found: the runs in `root`."""
    try:
        path = inside(root, name)
        parts = [file(root, name, part) for part in ("config.yaml", "metrics.jsonl")]
    except ValueError as error:
        return str(error)
    if None in parts:
        return f"{name!r} is not a run: it has no config.yaml and metrics.jsonl"
    real = path.relative_to(root.resolve()).as_posix()
    if real in found and real != name:
        return f"{name!r} is the run {real!r}: choose that"
    if real in found:
        return f"{name!r} is older than the {MOST_RUNS} runs to choose from: start the app with --runs on its folder"
    return f"{name!r} lies where runs are not searched for: start the app with --runs on the folder that holds it"


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
        skipped = entry.name in SKIPPED or entry.name.startswith(".") or not _is_name(entry.name)
        if not skipped and entry.is_dir(follow_symlinks=False):
            yield from _search(root, f"{name}/{entry.name}" if name else entry.name, depth - 1, budget)


def _is_name(name: str) -> bool:
    """Whether a link can hold the name, and `inside` takes it: UTF-8 without a backslash."""
    return "\\" not in name and not any("\ud800" <= c <= "\udfff" for c in name)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts run-2 before run-10."""
    digits = "".join(c if c.isdigit() else " " + c + " " for c in name).split()
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in digits]


def newest(root: Path, known: Sequence[str], count: int) -> list[str]:
    """The run that was written to last, with others of its folder: at most `count`, newest first, empty ones last."""
    order = _by_age(root, known)
    beside = [name for name in order if PurePosixPath(name).parent == PurePosixPath(order[0]).parent]
    return beside[:count]


def _by_age(root: Path, known: Sequence[str]) -> list[str]:
    """Newest first, empty ones last."""

    def age(name: str) -> tuple[bool, float]:
        try:
            found = (root / name / "metrics.jsonl").lstat()
        except OSError:  # removed in the meantime
            return True, 0.0
        return found.st_size == 0, -found.st_mtime

    return sorted(known, key=age)


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
    found = parse_yaml(text) if text else {}
    if not isinstance(found, dict):
        raise ValueError(f"must be a mapping of keys, not a {type(found).__name__}")
    try:
        count = sum(1 for _ in islice(_values(found), MOST_VALUES))
        if count < MOST_VALUES:
            return {str(key): _text_keys(value) for key, value in found.items()}
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    raise ValueError(f"holds more than {MOST_VALUES:,} values: it is no run log's")


def _text_keys(value: Any) -> Any:
    """The value with text for keys, also inside."""
    if isinstance(value, dict):
        return {str(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


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
    try:
        text = _text(root, name, "manifest.json") or "{}"
    except OSError:
        return None
    try:
        first, *words = json.loads(text)["command"]
        program = _program(PurePosixPath(first), bool(words))
        return shlex.join([*program, *words]) if program else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _program(path: PurePosixPath, has_words: bool) -> list[str] | None:
    """The words that start a program, be it a script or a module; None where they alone do not say which run."""
    if path.suffix != ".py":
        return [path.name]
    at = max((i for i, part in enumerate(path.parts[:-1]) if part in PROGRAMS), default=None)
    if at is None or not has_words:  # a program of someone's own, or one that makes several runs
        return None
    module = ".".join(path.with_suffix("").parts[at:])
    return ["python", "-m", module.removesuffix(".__main__")]


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
