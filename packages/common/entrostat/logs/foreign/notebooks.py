"""Table that transformers draws in a notebook while it trains, a row for each log.

<th>Step</th> <th>Training Loss</th> <th>completions / mean_length</th> <th>entropy</th>
<td>1</td> <td>0.010000</td> <td>35.500000</td> <td>No Log</td>
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from .rows import LimitedFile, Row, flat

START = re.compile(rb'\s*\{[^{}]*"cells"\s*:|\s*\{\s*"cells"\s*:')
LOSS = "Training Loss"
NAMES = {LOSS: "loss", "Validation Loss": "eval/loss"}
"""Metrics by the titles that transformers gives their columns; others keep their names, with spaces about a slash."""
HEADING, LINE, CELL = (re.compile(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}>", re.DOTALL) for tag in ("th", "tr", "td"))


def title(name: str) -> str:
    """Return the metric that has a title in the table."""
    return NAMES.get(name, name.replace(" / ", "/"))


def is_notebook(head: bytes) -> bool:
    """Return True if a file starts as a notebook with a table of a training."""
    return START.match(head) is not None and f"<th>{LOSS}</th>".encode() in head


def read_notebook(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows of the tables, each cell's output as a run of its own. Raises ValueError if it is no JSON."""
    try:
        cells = json.loads(file.whole())["cells"]
    except (ValueError, KeyError, RecursionError):
        raise ValueError("is no whole notebook: copy the file again") from None
    tables = [table for cell in cells for output in cell.get("outputs", []) if LOSS in (table := _html(output))]
    for number, table in enumerate(tables, 1):
        titles = [html.unescape(one).strip() for one in HEADING.findall(table)]
        names = [title(one) for one in titles]
        for line in LINE.findall(table):
            values = dict(zip(names, (cell.strip() for cell in CELL.findall(line)), strict=False))
            if (step := values.pop("Step", "")).isdigit():
                yield Row(f"table {number}" if len(tables) > 1 else "", int(step), dict(flat(values)))


def _html(output: dict[str, Any]) -> str:
    found = output.get("data", {}).get("text/html", "")
    return found if isinstance(found, str) else "".join(found)
