"""Logs as JSON: trainer_state.json of transformers and TRL, and files with an object on each line.

trainer_state.json has the entries of log_history, each with its step; the list alone is read too. verl's file logger
writes lines {"step": 1, "data": {...}}; lines {"step": 1, "entropy": ..., ...} are read as well, and rows of W&B's
history. An object may have a step for each of its keys, in several runs: {"one": {"1": {"entropy": ...}, "2": ...}}.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from .rows import STEPS, LimitedFile, Row, data_columns, flat, row, step_names, told_data

HISTORY = "log_history"


def is_state(head: bytes) -> bool:
    """Return True if a file starts as a trainer_state.json."""
    return head.lstrip().startswith(b"{") and (f'"{HISTORY}"'.encode() in head or b'"best_model_checkpoint"' in head)


def read_state(file: LimitedFile) -> Iterator[Row]:
    """Yield the entries of a trainer_state.json. Raises ValueError if it has no log_history or is no JSON."""
    content = _parsed(file.whole())
    history = content.get(HISTORY) if isinstance(content, dict) else None
    if not isinstance(history, list):
        raise ValueError(f"has no list {HISTORY}: take the trainer_state.json of a checkpoint of transformers or TRL")
    for entry in history:
        yield row(entry, ["step"]) if isinstance(entry, dict) else Row("", None, {})


def is_history(head: bytes) -> bool:
    """Return True if a file starts as a list of objects with a step, or as an object with such a list."""
    return re.match(rb"\s*(?:\{[^\[\]{}]*)?\[\s*\{", head) is not None and b'"step"' in head


def read_history(file: LimitedFile) -> Iterator[Row]:
    """Yield the entries of a list such as log_history, the longest of an object. Raises ValueError if it is no JSON."""
    content = _parsed(file.whole())
    if isinstance(content, dict):
        content = max((one for one in content.values() if isinstance(one, list)), key=len, default=[])
    for entry in content:
        yield row(entry, step_names(entry)) if isinstance(entry, dict) else Row("", None, {})


def is_columns(head: bytes) -> bool:
    """Return True if a file starts as an object whose first list is of steps."""
    return re.match(rb"\s*\{(?:[^\[\]{}]*,)?\s*\"(?:global_)?steps?\"\s*:\s*\[\s*\d", head) is not None


def read_columns(file: LimitedFile) -> Iterator[Row]:
    """Yield the steps of an object with a list for each metric, as long as that of the steps; others are left out."""
    content = _parsed(file.whole())
    name = next(name for name in content if name in ("step", "steps", "global_step", "global_steps"))
    steps = content[name]
    columns = {key: column for key, column in content.items() if isinstance(column, list) and key != name}
    for at, step in enumerate(steps):
        yield Row("", step, dict(flat({key: of[at] for key, of in columns.items() if len(of) == len(steps)})))


def is_keyed(head: bytes) -> bool:
    """Return True if a file starts as an object in which steps are keys."""
    return re.match(rb"\s*\{", head) is not None and re.search(rb"[:{]\s*\{?\s*\"\d{1,15}\"\s*:\s*\{", head) is not None


def read_keyed(file: LimitedFile) -> Iterator[Row]:
    """Yield the steps of each object whose keys are steps; its own key, and those around it, name the run."""
    content = _parsed(file.whole())
    found = list(_keyed(content, ())) if isinstance(content, dict) else []
    for path, steps in found:
        name = "/".join(path) if len(found) > 1 else ""
        yield from (Row(name, int(step), dict(flat(metrics))) for step, metrics in steps.items())


def _keyed(record: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if len(record) > 1 and all(key.isdigit() and isinstance(value, dict) for key, value in record.items()):
        yield path, record
        return
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _keyed(value, (*path, key))


def is_data(head: bytes) -> bool:
    """Return True if a file starts with an object that is a problem, as a data set's."""
    return bool(_problem(head))


def read_data(file: LimitedFile) -> NoReturn:
    """Raise ValueError: a data set has no steps."""
    file.file.seek(0)
    raise ValueError(f"is {told_data(_problem(file.read(2**20)))}")


def _problem(head: bytes) -> list[str]:
    """Return the columns of a data set in the object that a file starts with; an empty list if it is none."""
    text = head.decode("utf-8", "replace").lstrip("[ \t\r\n")
    try:
        record, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return []
    return data_columns(record) if isinstance(record, dict) else []


def is_lines(head: bytes) -> bool:
    """Return True if the first line of a file is an object with a step."""
    return _of_line(head.partition(b"\n")[0].decode("utf-8", "replace")).step is not None


def read_json_lines(file: LimitedFile) -> Iterator[Row]:
    """Yield the lines of a .jsonl file; lines that are no objects with a step have the step None."""
    trained: Any = None
    for line in file.lines():
        if line.endswith("\n") or not file.cut:
            found = _of_line(line, trained)
            trained = found.step if any(name in line for name in STEPS[0]) else trained
            yield found


def _of_line(line: str, trained: Any = None) -> Row:
    """Return a line as a row. trained: last step of training, to which a row without one belongs; None: none yet."""
    try:
        record = _parsed(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        return Row("", None, {})
    data = record.get("data")
    if trained is not None and not any(name in record for name in (*STEPS[0], *STEPS[1][:2])):
        return Row("", trained, dict(flat({name: value for name, value in record.items() if name not in STEPS[1]})))
    return Row("", record.get("step"), dict(flat(data))) if isinstance(data, dict) else row(record, step_names(record))


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is not whole JSON: copy the file again") from None
