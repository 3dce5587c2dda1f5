"""Table of numbered rows with named columns, for all file types."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..process.text import one_line

AT_A_TIME = 4096
"""Rows per batch."""

Row = dict[str, Any] | ValueError
"""Values of a row by column, or its error."""


@dataclass(frozen=True)
class Table:
    """Rows with named columns."""

    name: str
    """File or data set, for errors."""
    source: str
    """Name of the data set, for rows that do not name one."""
    unit: str
    """Word for a row in errors: "row" or "line", from 1."""
    columns: Sequence[str]
    """Names of the columns, each followed by its fields with dots: reward_model, reward_model.ground_truth."""
    rows: Callable[[Sequence[str]], Iterator[tuple[int, Row]]]
    """Function that yields numbered rows with at least the given columns. Raises ValueError at a broken row."""


def arrow_rows(
    path: str, batches: Callable[[Sequence[str]], Iterable[Any]], columns: Sequence[str]
) -> Iterator[tuple[int, Row]]:
    """Yield the numbered rows of record batches, validated before they are read."""
    import pyarrow as pa

    number = 1
    try:
        for batch in batches(columns):
            batch.validate(full=True)
            for row in batch.to_pylist():
                yield number, row
                number += 1
    except (pa.ArrowException, OSError, MemoryError, UnicodeError) as error:
        raise ValueError(f"{path} is broken from row {number} on: {one_line(error)}") from None


def field_names(fields: Iterable[Any], prefix: str = "") -> list[str]:
    """Return the names of Arrow fields, each followed by its nested fields."""
    import pyarrow as pa

    names = []
    for field in fields:
        names.append(prefix + field.name)
        if pa.types.is_struct(field.type):
            names += field_names(field.type, f"{prefix}{field.name}.")
    return names
