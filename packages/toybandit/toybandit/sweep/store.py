"""Files of a sweep: parts/*.parquet as calls end, sweep.parquet when all have ended."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from entrostat.settings.commandline import writing

from .cells import Cell
from .measure import Row


class Store:
    """Rows of a sweep in a folder, by the key of their cell. Writes are atomic: no file is ever half written.

    Failed runs are not kept in the parts, so they are tried again.
    """

    def __init__(self, out: Path) -> None:
        self.parts = out / "parts"
        self.path = out / "sweep.parquet"
        """Path of the merged table."""
        self.rows: dict[str, Row] = {}
        for part in sorted(self.parts.glob("*.parquet")):
            self._keep(_finished(pq.read_table(part).to_pylist()))

    def __contains__(self, cell: Cell) -> bool:
        return cell.key in self.rows

    def add(self, rows: list[Row]) -> None:
        """Write the rows of one call."""
        self._keep(rows)
        finished = _finished(rows)
        if finished:
            self.parts.mkdir(parents=True, exist_ok=True)
            _write(finished, self.parts / f"{finished[0]['cell']}-{len(finished)}.parquet")

    def surplus(self, cells: Sequence[Cell]) -> int:
        """Return the number of runs in the merged table that are not among these cells."""
        if not self.path.exists():
            return 0
        return len(set(pq.read_table(self.path, columns=["cell"])["cell"].to_pylist()) - {cell.key for cell in cells})

    def merge(self, cells: Sequence[Cell]) -> list[Row]:
        """Write the rows of these cells as one table, in their order, and return them."""
        rows = [self.rows[cell.key] for cell in cells]
        _write(rows, self.path)
        return rows

    def _keep(self, rows: list[Row]) -> None:
        self.rows |= {row["cell"]: row for row in rows}


def _finished(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not row["error"]]


def table(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table; a value that a row lacks is null. Hyperparameters, named args.*, come last."""
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=lambda name: name.startswith("args."))
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    """Return values as a column: integers mixed with floats become floats; other mixed types become text, or JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array(values, pa.int64() if kinds == {int} else pa.float64())
    if kinds in ({bool}, {str}):
        return pa.array(values, pa.bool_() if kinds == {bool} else pa.string())
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(texts, pa.string())


def _write(rows: Sequence[Row], path: Path) -> None:
    partial = path.with_suffix(".partial")
    with writing(path):
        pq.write_table(table(rows), partial)
    os.replace(partial, path)
