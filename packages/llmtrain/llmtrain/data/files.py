"""Files as tables: parquet, jsonl (one object per line), json (an array of objects) and csv (texts, with a header).

Rows and lines are numbered from 1; a header is no row.
"""

import csv
import json
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..process.text import one_line
from .table import AT_A_TIME, Row, Table, arrow_rows, field_names

KINDS = (".parquet", ".jsonl", ".json", ".csv")
DEEP = 4
"""Depth to which nested fields of a JSON row become columns."""


def file_table(path: Path, name: str, source: str) -> Table:
    """Return the table of one file."""
    if path.suffix not in KINDS:
        raise ValueError(f"{path}: unknown file type {path.suffix!r}; choose from {', '.join(KINDS)}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    with path.open("rb") as file:
        begins = file.read(64)
    if begins.startswith(b"version https://git-lfs"):
        raise ValueError(f"{path} is a pointer of Git LFS, not the file itself: fetch it with git lfs pull")
    if begins.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise ValueError(f"{path} is text in UTF-16: save it in UTF-8")
    return {".parquet": _parquet, ".csv": _csv}.get(path.suffix, _json)(path, name, source)


def _parquet(path: Path, name: str, source: str) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise ValueError(f"{path} is not a valid parquet file: {one_line(error)}") from None
    if not rows:
        raise ValueError(f"{path} has no rows")
    names = field_names(schema)
    _require_distinct(path, names)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        with pq.ParquetFile(path, page_checksum_verification=True) as opened:
            yield from opened.iter_batches(AT_A_TIME, columns=list(columns))

    return Table(name, source, "row", names, partial(arrow_rows, str(path), batches))


def _json(path: Path, name: str, source: str) -> Table:
    """Return the table of a file with one object per line, or with one array of objects."""
    data = path.read_bytes().removeprefix(BOM_UTF8)
    if data.lstrip()[:1] == b"[" and path.suffix == ".json":
        found = _parse(data)
        if isinstance(found, ValueError):
            raise ValueError(f"{path}: {found}")
        rows, unit = [(i, _object(row)) for i, row in enumerate(found, 1)], "row"
    else:
        lines = enumerate(data.split(b"\n"), 1)
        rows, unit = [(i, _object(_parse(line))) for i, line in lines if line.strip()], "line"
    if not rows:
        raise ValueError(f"{path} has no rows")
    first, problem = rows[0]
    if isinstance(problem, ValueError) and not any(isinstance(row, dict) for _, row in rows):
        fix = "; rename a file with one array to .json" if data.lstrip()[:1] == b"[" and unit == "line" else ""
        raise ValueError(f"{path}, {unit} {first}: {problem}{fix}")
    columns: dict[str, None] = {}
    for _, row in rows:
        if isinstance(row, dict):
            columns.update(dict.fromkeys(_keys(row)))
    return Table(name, source, unit, list(columns), lambda _: iter(rows))


def _csv(path: Path, name: str, source: str) -> Table:
    """Return the table of a file with a header line; an empty cell is missing."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            columns = list(reader.fieldnames or ())
            _require_distinct(path, columns)
            rows = [(i, _cells(row)) for i, row in enumerate(reader, 1)]
    except (csv.Error, UnicodeError) as error:
        raise ValueError(f"{path} is not a valid csv file: {one_line(error)}") from None
    if not rows:
        raise ValueError(f"{path} has no rows")
    return Table(name, source, "row", columns, lambda _: iter(rows))


def _require_distinct(path: Path, columns: Sequence[str]) -> None:
    """Raise ValueError if two columns have one name: which of them is meant?"""
    if twice := [name for name, count in Counter(columns).items() if count > 1]:
        raise ValueError(f"{path} has several columns called {twice[0]!r}: rename or drop all but one")


def _cells(row: dict[str, Any]) -> Row:
    """Return the cells of a row by column, or an error if it has more cells than the header."""
    if None in row:  # where DictReader puts them
        return ValueError("the row has more cells than the header")
    return {column: cell or None for column, cell in row.items()}


def _parse(data: bytes) -> Any:
    """Return the JSON value, or a ValueError with the cause."""
    try:
        return json.loads(data, object_pairs_hook=_distinct)
    except TwiceError as error:
        return error
    except (ValueError, RecursionError) as error:
        return ValueError(f"not JSON: {one_line(error)}")


class TwiceError(ValueError):
    """A key stands twice in an object."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises TwiceError if two of its keys are equal: which of the values is meant?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise TwiceError(f"the key {one_line(twice)!r} is there twice")
    return found


def _object(value: Any) -> Row:
    """Return a row; a dialogue, a list of turns that say who they are `from`, has columns 0, 1 and so on."""
    if isinstance(value, dict | ValueError):
        return value
    if isinstance(value, list) and value and all(isinstance(turn, dict) and "from" in turn for turn in value):
        return {str(i): turn for i, turn in enumerate(value)}
    return ValueError(f"expected an object, got {type(value).__name__}")


def _keys(row: dict[str, Any], prefix: str = "", deep: int = DEEP) -> Iterator[str]:
    for key, value in row.items():
        yield prefix + key
        if deep and isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.", deep - 1)
