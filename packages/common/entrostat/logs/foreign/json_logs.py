"""Logs as JSON: trainer_state.json of transformers and TRL, and files with an object on each line.

trainer_state.json has the entries of log_history, each with its step; the list alone is read too. verl's file logger
writes lines {"step": 1, "data": {...}}; lines {"step": 1, "entropy": ..., ...} are read as well, and rows of W&B's
history. An object may have a step for each of its keys, in several runs: {"one": {"1": {"entropy": ...}, "2": ...}}.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from .rows import (
    COUNTED,
    HEAD,
    KINDS,
    LOGGED,
    NODES,
    RANKS,
    RUNS,
    STEP,
    TRAINED,
    LimitedFile,
    Row,
    counts_training,
    data_columns,
    flat,
    row,
    step_names,
    told_data,
)

HISTORY = "log_history"
ANY_STEP = b"(?i:" + "|".join(map(re.escape, (STEP, *TRAINED, *COUNTED))).replace("_", "[_ ]").encode() + b")"
"""Names of a step, for a regular expression."""
AROUND = (*RUNS, *RANKS, *NODES, *KINDS)
"""Names outside of `data` in a line that belong to what is in it."""


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
    listed = re.match(rb"\s*(?:\{[^\[\]{}]*)?\[\s*\{", head) is not None
    return listed and (b'"step"' in head or re.search(rb'"' + ANY_STEP + rb'"\s*:\s*"?\d', head) is not None)


def read_history(file: LimitedFile) -> Iterator[Row]:
    """Yield the entries of a list such as log_history, the longest of an object. Raises ValueError if it is no JSON."""
    content = _parsed(file.whole())
    if isinstance(content, dict):
        content = max((one for one in content.values() if isinstance(one, list)), key=len, default=[])
    for entry in content:
        yield row(entry, step_names(entry)) if isinstance(entry, dict) else Row("", None, {})


def is_columns(head: bytes) -> bool:
    """Return True if a file starts as an object whose first list is of steps."""
    return re.match(rb"\s*\{(?:[^\[\]{}]*,)?\s*\"" + ANY_STEP + rb"s?\"\s*:\s*\[\s*\d", head) is not None


def read_columns(file: LimitedFile) -> Iterator[Row]:
    """Yield the steps of an object with a list for each metric, as long as that of the steps; others are left out."""
    columns = _lists(file)
    steps_of = {name.removesuffix("s"): name for name in columns}
    name = next((steps_of[one] for one in step_names(steps_of)), "")
    if not name:
        raise ValueError("has no list of steps")
    steps = columns.pop(name)
    yield from _transposed(columns, steps)


def read_lists(file: LimitedFile) -> Iterator[Row]:
    """Yield rows without a step of an object with a list for each metric; shorter lists are left out."""
    columns = _lists(file)
    yield from _transposed(columns, [None] * max(map(len, columns.values()), default=0))


def _lists(file: LimitedFile) -> dict[str, list[Any]]:
    content = _parsed(file.whole())
    return {name: column for name, column in content.items() if isinstance(column, list)}


def _transposed(columns: dict[str, list[Any]], steps: list[Any]) -> Iterator[Row]:
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
    raise ValueError(f"is {told_data(_problem(file.read(HEAD)))}")


def _problem(head: bytes) -> list[str]:
    """Return the columns of a data set in the object that a file starts with; an empty list if it is none."""
    return data_columns(first_object(head))


def first_object(head: bytes) -> dict[str, Any]:
    """Return the object that a file, or the list in it, starts with; empty if there is none or it is not whole."""
    text = head.decode("utf-8", "replace").lstrip("[ \t\r\n")
    try:
        record, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def is_lines(head: bytes) -> bool:
    """Return True if the first line of a file is an object with a step."""
    return _of_line(head.partition(b"\n")[0].decode("utf-8", "replace"))[0].step is not None


def read_json_lines(file: LimitedFile) -> Iterator[Row]:
    """Yield the lines of a .jsonl file; lines that are no objects with a step have the step None."""
    trained: Any = None
    for line in file.lines():
        if line.endswith("\n") or not file.cut:
            found, counts = _of_line(line, trained)
            trained = found.step if counts else trained
            yield found


def _of_line(line: str, trained: Any = None) -> tuple[Row, bool]:
    """Return a line as a row, and whether its step counts training steps by its name.

    trained: last such step, to which a row without a step of its own belongs; None: none yet.
    """
    try:
        record = _parsed(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        return Row("", None, {}), False
    steps, data = step_names(record), record.get("data")
    if isinstance(data, dict):
        record = data | {name: value for name, value in record.items() if name in (*steps, *AROUND)}
    found = row(record, steps)
    if trained is not None and steps in ([], [LOGGED]):
        return found._replace(step=trained), False
    return found, counts_training(steps)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is not whole JSON: copy the file again") from None
