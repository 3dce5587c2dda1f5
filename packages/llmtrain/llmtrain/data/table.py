"""A table: numbered rows under named columns, whatever they come from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..process.text import one_line

AT_A_TIME = 4096
"""Rows of a batch."""

Row = dict[str, Any] | ValueError
"""The values of a row by column, or what is wrong with it."""


@dataclass(frozen=True)
class Table:
    """Rows under named columns."""

    name: str
    """File or data set, for errors."""
    source: str
    """Name of the data set its rows belong to, where they do not say."""
    unit: str
    """What a row is called: "row" (from 0) or "line" (from 1)."""
    columns: Sequence[str]
    """Names of the columns. Fields of a column follow it, dotted: reward_model, reward_model.ground_truth."""
    rows: Callable[[Sequence[str]], Iterator[tuple[int, Row]]]
    """Numbered rows with at least the columns asked for. Raises ValueError for a file that is broken further down."""


def arrow_rows(
    path: str, batches: Callable[[Sequence[str]], Iterable[Any]], columns: Sequence[str]
) -> Iterator[tuple[int, Row]]:
    """The rows of record batches, checked before they are read."""
    import pyarrow as pa

    number = 0
    try:
        for batch in batches(columns):
            batch.validate(full=True)
            for row in batch.to_pylist():
                yield number, row
                number += 1
    except (pa.ArrowException, OSError, MemoryError, UnicodeError) as error:
        raise ValueError(f"{path} is broken from row {number} on: {one_line(error)}") from None


def field_names(fields: Iterable[Any], prefix: str = "") -> list[str]:
    """Names of Arrow fields, each followed by those within it."""
    import pyarrow as pa

    names = []
    for field in fields:
        names.append(prefix + field.name)
        if pa.types.is_struct(field.type):
            names += field_names(field.type, f"{prefix}{field.name}.")
    return names
