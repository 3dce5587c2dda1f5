"""Answers to probes for the page, from the files probes.jsonl.gz of runs. A file is unpacked once until it changes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from entrostat.probe_log import FILE, parse_probes, read_probes

from ...shared import run_folder

LARGEST = 64 * 2**20
"""Upper limit for a packed file, bytes."""
KEPT = 4
"""Upper limit for files kept in memory."""


class Name(NamedTuple):
    """Place of an answer in a step."""

    probe: int
    sample: int


Step = Mapping[Name, Mapping[str, Any]]
"""Answers of a step: text, reward, tokens and their numbers."""
Texts = Mapping[int, Mapping[Name, tuple[str, ...]]]
"""Token texts of the answers of all steps."""


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


def texts(root: Path, name: str) -> Texts:
    """Return the tokens of all answers of a run, by step in ascending order.

    Raises ValueError in one line if the file is missing, too large or has no answer.
    """
    found = _texts(*_stamp(root, name))
    if not found:
        raise ValueError(f"{name}/{FILE} has no answer that can be read")
    return found


def answers(root: Path, name: str, step: int) -> Step:
    """Return the answers of one step of a run."""
    return _answers(*_stamp(root, name), step)


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
def _texts(path: str, changed: int, size: int) -> Texts:
    steps = {step: _parsed(text) for step, text in _unpacked(path, changed, size).items()}
    return {
        step: {name: tuple(answer["tokens"]) for name, answer in found.items()}
        for step, found in steps.items()
        if found
    }


@lru_cache(maxsize=4 * KEPT)
def _answers(path: str, changed: int, size: int, step: int) -> Step:
    return _parsed(_unpacked(path, changed, size).get(step, b""))


def _parsed(text: bytes) -> dict[Name, dict[str, Any]]:
    """Return the answers on the lines that are answers: with a name, tokens of text and finite numbers or nulls."""
    try:
        lines = parse_probes(text)
    except (ValueError, RecursionError):
        return {}
    return {
        Name(line["probe"], line["sample"]): {key: _plain(key, value) for key, value in line.items()}
        for line in lines
        if type(line.get("probe")) is int and type(line.get("sample")) is int and _are_texts(line.get("tokens"))
    }


def _are_texts(tokens: Any) -> bool:
    return isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)


def _plain(key: str, value: Any) -> Any:
    """Return a value with None in place of numbers that are not finite, and of a reward that is no number."""
    if isinstance(value, list):
        return [None if isinstance(x, float) and not isfinite(x) else x for x in value]
    unusable = type(value) not in (int, float) if key == "reward" else False
    return None if unusable or (isinstance(value, float) and not isfinite(value)) else value
