"""Answers to probes for the page, from the files probes.jsonl.gz of runs. A file is unpacked once until it changes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple, TypeGuard

from entrostat.logs.probe_log import FILE, parse_probes, read_probes

from ...shared import run_folder

LARGEST = 64 * 2**20
"""Upper limit for a packed file, bytes."""
KEPT = 4
"""Upper limit for files kept in memory."""


class Name(NamedTuple):
    """Place of an answer in a step."""

    probe: int
    sample: int


class Brief(NamedTuple):
    """Answer without the numbers of its tokens, which are read when it is drawn."""

    tokens: tuple[str, ...]
    reward: float | None = None
    line: int = 0
    """Index of its line in the text of its step."""


Step = Mapping[Name, Brief]
"""Answers of a step."""


def with_probes(root: Path, names: Sequence[str]) -> list[str]:
    """Return those of the runs in `root` that have answers to probes."""
    found = []
    for name in names:
        try:
            if not run_folder.is_foreign(root, name) and run_folder.file(root, name, FILE):
                found.append(name)
        except (ValueError, OSError):  # leads out of the folder, or removed meanwhile
            continue
    return found


def steps(root: Path, name: str) -> Mapping[int, Step]:
    """Return the answers of a run, by step in ascending order.

    Raises ValueError in one line if the file is missing, too large or has no answer.
    """
    found = _steps(*_stamp(root, name))
    if not found:
        raise ValueError(f"{name}/{FILE} has no answer that can be read")
    return found


def answer(root: Path, name: str, step: int, brief: Brief) -> dict[str, Any]:
    """Return one answer of a step with the numbers of its tokens, None in place of those that cannot be drawn."""
    lines = _unpacked(*_stamp(root, name))[step].splitlines()
    return {key: _plain(value) for key, value in parse_probes(lines[brief.line])[0].items()}


def _stamp(root: Path, name: str) -> tuple[str, int, int]:
    """Return path, time of the last write and size of a run's file."""
    path = run_folder.file(root, name, FILE)
    if path is None:
        raise ValueError(f"{name} has no answers to probes: set log.probes when it is trained")
    about = path.stat()
    if about.st_size > LARGEST:
        raise ValueError(f"{name}/{FILE} is larger than {LARGEST // 2**20} MiB")
    return str(path), about.st_mtime_ns, about.st_size


@lru_cache(maxsize=KEPT)
def _unpacked(path: str, changed: int, size: int) -> dict[int, bytes]:
    return dict(sorted(read_probes(Path(path).read_bytes()[:size]).items()))


@lru_cache(maxsize=KEPT)
def _steps(path: str, changed: int, size: int) -> Mapping[int, Step]:
    steps = {step: _briefs(text) for step, text in _unpacked(path, changed, size).items()}
    return {step: found for step, found in steps.items() if found}


def _briefs(text: bytes) -> dict[Name, Brief]:
    """Return the answers on the lines that are answers: with a name, and tokens of text."""
    try:
        lines = parse_probes(text)
    except (ValueError, RecursionError):
        return {}
    found = {}
    for i, line in enumerate(lines):
        probe, sample, tokens, reward = (line.get(key) for key in ("probe", "sample", "tokens", "reward"))
        if type(probe) is int and type(sample) is int and _are_texts(tokens):
            earned = reward if _is_number(reward) else None
            found[Name(probe, sample)] = Brief(tuple(map(intern, tokens)), earned, i)
    return found


def _are_texts(tokens: Any) -> TypeGuard[list[str]]:
    return isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)


def _plain(value: Any) -> Any:
    """Return a value with None in place of numbers that are not finite or too large."""
    if isinstance(value, list):
        return [None if isinstance(x, int | float) and not _is_number(x) else x for x in value]
    return None if isinstance(value, int | float) and not _is_number(value) else value


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) < 2**63
