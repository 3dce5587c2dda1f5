"""Logs of which no row has a step: tables and JSON with an entropy. The rows of each run are numbered from 1.

entropy,reward          {"entropy": 0.9, "reward": 0.1}          {"entropy": [0.9, 0.8], "reward": [0.1, 0.2]}
0.9,0.1                 {"entropy": 0.8, "reward": 0.2}
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from .json_logs import first_object, read_history, read_json_lines, read_lists
from .metric_names import translate
from .rows import BESIDE, HEAD, KINDS, RUNS, LimitedFile, Row, flat, spelled, step_names
from .wandb_tables import header_of, read_csv


def is_unnumbered(head: bytes) -> bool:
    """Return True if the header of a table, or the first object of JSON, has an entropy and no step."""
    names = _names(head)
    return not step_names(names) and "entropy" in translate(names).values()


def _names(head: bytes) -> Collection[str]:
    return dict(flat(first_object(head))) if head.lstrip()[:1] in (b"{", b"[") else header_of(head)


def read_unnumbered(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows with their numbers. Raises ValueError if a row has a text that may say what it is of."""
    head = file.read(HEAD)
    file.file.seek(0)
    first = first_object(head)
    if not first:
        read = read_csv
    elif any(isinstance(value, list) for value in first.values()):
        read = read_lists
    else:
        read = read_history if head.lstrip().startswith(b"[") else read_json_lines
    numbers = Counter[str]()
    for found in read(file):
        numbers[found.run] += 1
        if text := next((name for name, value in found.metrics.items() if _names_something(name, value)), ""):
            raise ValueError(f"has no steps, and texts in {text}: add a column step if its rows are those of a run")
        yield found._replace(step=numbers[found.run])


def _names_something(name: str, value: Any) -> bool:
    """Return True for a text that may say what a row is of, as in a table of results."""
    return isinstance(value, str) and spelled(name) not in (*BESIDE, *RUNS, *KINDS, "date", "datetime")
