"""Folder of run logs; nothing outside it is read.

root = folder()                      the allowed folder
names(root)                          its runs, such as demo/grpo
recent(root, names)                  the runs that can be chosen: the newest MOST_RUNS
inside(root, name, "config.yaml")    a path in it; ValueError if it leads outside
config(root, name)                   a run's configuration, plain values only
"""

import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from entrostat.logs.foreign import foreign_runs
from entrostat.settings.plain_yaml import parse_yaml

from ..launch import RUNS

DEPTH = 4
"""Maximum depth of a run below the root."""
MOST_RUNS = 500
"""Upper limit for runs that can be chosen."""
MOST_ENTRIES = 20_000
"""Upper limit for folder entries that the search for runs visits."""
LARGEST_TEXT = 2**20
"""Upper limit for a config.yaml or a manifest.json, bytes."""
MOST_VALUES = 100_000
"""Upper limit for the values of a configuration."""
OF_A_FILE = "::"
"""Text between a file and a run in it, in the name of a run from another trainer's log."""
MOST_LOGS = 200
"""Upper limit for files of other trainers that the search opens."""
SKIPPED = ("checkpoints", "models")
"""Folders that are not searched for runs."""
HOUSEKEEPING = ("out", "overwrite", "threads", "save_every", "checkpoint")
"""Configuration keys that do not affect the numbers of a run."""
SEEDS = ("seed", "seeds")
PROGRAMS = ("toybandit", "llmtrain")
"""Packages whose commands make runs."""


def folder() -> Path:
    """Return the allowed folder from the environment variable; `runs` in the working directory by default."""
    return Path(os.environ.get(RUNS, "runs")).resolve()


def inside(root: Path, *parts: str) -> Path:
    """Return the real path of root/parts. Raises ValueError in one line if it does not exist or is outside `root`."""
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
    """Return the regular file `part` of a run; None if there is none. Raises ValueError if it leads out of `root`."""
    if not os.path.lexists(inside(root, name) / part):
        return None
    path = inside(root, name, part)
    return path if stat.S_ISREG(path.stat().st_mode) else None


def names(root: Path) -> list[str]:
    """Return the runs in `root` as paths relative to it, at most DEPTH deep. Links are not followed.

    Raises ValueError in one line if `root` cannot be read.
    """
    try:
        os.scandir(root).close()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ValueError(f"the folder of runs cannot be read: {error.strerror}") from None
    return sorted(_search(root, "", DEPTH, Budget()), key=_natural)


def recent(root: Path, found: Sequence[str]) -> list[str]:
    """Return the MOST_RUNS runs that were written to last, in the order of `found`."""
    if len(found) <= MOST_RUNS:
        return list(found)
    kept = set(_by_age(root, found)[:MOST_RUNS])
    return [name for name in found if name in kept]


def problem(root: Path, name: str, found: Sequence[str]) -> str:
    """Return the reason why a run cannot be chosen, in one line. found: the runs in `root`."""
    try:
        path = inside(root, name.partition(OF_A_FILE)[0])
        if path.is_file():
            return f"{name!r} is no log that can be read; known are {foreign_runs.KNOWN}"
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
    return f"{name!r} is in a folder that is not searched for runs: start the app with --runs on that folder"


@dataclass
class Budget:
    """Limits that a search has not used up yet."""

    entries: int = field(default_factory=lambda: MOST_ENTRIES)
    logs: int = field(default_factory=lambda: MOST_LOGS)


def _search(root: Path, name: str, depth: int, budget: Budget, in_run: bool = False) -> Iterator[str]:
    try:
        with os.scandir(root / name) as entries:
            found = [entry for entry, _ in zip(entries, range(budget.entries), strict=False)]
    except OSError:  # removed meanwhile, or no permission to read it
        return
    budget.entries -= len(found)
    found = sorted((entry for entry in found if _is_name(entry.name)), key=lambda entry: entry.name)
    if {"config.yaml", "metrics.jsonl"} <= {entry.name for entry in found}:
        yield name or "."
        in_run = True  # its files, and those below, are its own
    if not in_run:
        yield from _foreign(name, found, budget)
    if depth == 0:
        return
    saved = {int(match[1]): entry for entry in found if (match := foreign_runs.CHECKPOINT.fullmatch(entry.name))}
    earlier = [entry for step, entry in saved.items() if step < max(saved)]  # the last one has their history
    for entry in found:
        skipped = entry.name in SKIPPED or entry.name.startswith(".") or entry in earlier
        if not skipped and entry.is_dir(follow_symlinks=False):
            yield from _search(root, f"{name}/{entry.name}" if name else entry.name, depth - 1, budget, in_run)


def _foreign(name: str, entries: Sequence["os.DirEntry[str]"], budget: Budget) -> Iterator[str]:
    """Yield the runs of other trainers in the files of a folder."""
    events = False
    for entry in entries:
        if not foreign_runs.is_named_as_log(entry.name) or OF_A_FILE in entry.name or budget.logs == 0:
            continue
        try:
            about = entry.stat(follow_symlinks=False)
            runs = _runs_in(entry.path, about.st_mtime_ns, about.st_size) if stat.S_ISREG(about.st_mode) else ()
        except OSError:
            continue
        budget.logs -= 1
        if foreign_runs.is_event_file(entry.name):
            events = events or bool(runs)
            continue
        path = f"{name}/{entry.name}" if name else entry.name
        yield from (f"{path}{OF_A_FILE}{run}" if run else path for run in runs if _is_name(run))
    if events:
        yield name or "."


@lru_cache(maxsize=1024)
def _runs_in(path: str, changed: int, size: int) -> tuple[str, ...]:
    """Return the names of the runs in a file that was last written at `changed`; empty if it is no log."""
    with open(path, "rb") as file:
        return tuple(foreign_runs.runs_in(file))


def is_foreign(root: Path, name: str) -> bool:
    """Return True if a run's name is that of another trainer's log. Raises ValueError if it leads out of `root`."""
    path = inside(root, name.partition(OF_A_FILE)[0])
    return path.is_file() or not (path / "config.yaml").exists()


def _is_name(name: str) -> bool:
    """Return True if a link can hold the name and `inside` accepts it: UTF-8 without a backslash."""
    return "\\" not in name and not any("\ud800" <= c <= "\udfff" for c in name)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts run-2 before run-10."""
    digits = "".join(c if c.isdigit() else " " + c + " " for c in name).split()
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in digits]


def newest(root: Path, known: Sequence[str], count: int) -> list[str]:
    """Return at most `count` runs from the folder of the newest run: newest first, empty ones last."""
    order = _by_age(root, known)
    beside = [name for name in order if _parent(name) == _parent(order[0])]
    return beside[:count]


def _parent(name: str) -> PurePosixPath:
    return PurePosixPath(name.partition(OF_A_FILE)[0]).parent


def _by_age(root: Path, known: Sequence[str]) -> list[str]:
    """Return the runs newest first, empty ones last."""

    def age(name: str) -> tuple[bool, float]:
        path = root / name.partition(OF_A_FILE)[0]
        try:
            found = (path / "metrics.jsonl" if (path / "config.yaml").exists() else path).lstat()
        except OSError:  # removed meanwhile
            return True, 0.0
        return found.st_size == 0, -found.st_mtime

    return sorted(known, key=age)


def config(root: Path, name: str) -> Mapping[str, Any]:
    """Return the configuration of a run. Raises ValueError in one line if it cannot be read."""
    text = _text(root, name, "config.yaml")
    try:
        return _parsed(text)
    except ValueError as error:
        raise ValueError(f"{name}/config.yaml {error}") from None


@lru_cache(maxsize=128)
def _parsed(text: str) -> Mapping[str, Any]:
    """Return the plain values of a YAML text; cached, because parsing takes 10 ms."""
    found = parse_yaml(text) if text else {}
    if not isinstance(found, dict):
        raise ValueError(f"must be a mapping of keys, not a {type(found).__name__}")
    try:
        count = sum(1 for _ in islice(_values(found), MOST_VALUES))
        if count < MOST_VALUES:
            return {str(key): _text_keys(value) for key, value in found.items()}
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    raise ValueError(f"holds more than {MOST_VALUES:,} values: it does not belong to a run log")


def _text_keys(value: Any) -> Any:
    """Return the value with all keys as text, nested ones too."""
    if isinstance(value, dict):
        return {str(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


def _values(value: Any) -> Iterator[Any]:
    """Yield every nested value; values that YAML aliases repeat are yielded each time."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ()
    for item in inner:
        yield from _values(item)


def command(root: Path, name: str) -> str | None:
    """Return the command that made a run, without the path of its program; None if the manifest has no command.

    Raises ValueError in one line if the run is not in `root`.
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
    """Return the words that start a program, a script or a module; None if they do not identify the run."""
    if path.suffix != ".py":
        return [path.name]
    at = max((i for i, part in enumerate(path.parts[:-1]) if part in PROGRAMS), default=None)
    if at is None or not has_words:  # a custom program, or one that makes several runs
        return None
    module = ".".join(path.with_suffix("").parts[at:])
    return ["python", "-m", module.removesuffix(".__main__")]


def _text(root: Path, name: str, part: str) -> str:
    path = file(root, name, part)
    if path is None:
        return ""
    if path.stat().st_size > LARGEST_TEXT:
        raise ValueError(f"{name}/{part} is larger than {LARGEST_TEXT // 2**20} MiB: it does not belong to a run log")
    return path.read_text(encoding="utf-8", errors="replace")


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with keys joined by dots."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value}
    return found


def experiment(values: Mapping[str, Any]) -> str:
    """Return the configuration as text without seeds and housekeeping: equal for runs that differ by seed only."""
    rest = {key: value for key, value in values.items() if key not in (*HOUSEKEEPING, *SEEDS)}
    return json.dumps(rest, sort_keys=True, default=str)


def differences(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return configuration keys whose values differ between runs: by key, each run's value as text, – if missing."""
    every = {name: flat(values) for name, values in configs.items()}
    keys = dict.fromkeys(key for values in every.values() for key in values if key not in HOUSEKEEPING)
    table = {key: {name: _shown(values.get(key)) for name, values in every.items()} for key in keys}
    return {key: row for key, row in table.items() if len(set(row.values())) > 1}


def _shown(value: Any) -> str:
    return "–" if value is None or value == {} else str(value)
