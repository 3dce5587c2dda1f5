"""Rows to keep, by the values of their columns.

    ability=math                                    rows whose column `ability` is `math`
    ability=code style=instruct style=complete      several values of a column: any of them; several columns: all

A table without a column is not filtered by it, so files of several forms can be filtered together.
"""

from collections.abc import Sequence
from typing import Any

from ..process.text import one_line
from .columns import cell
from .table import Table

SHOWN = 10
"""Values of a column that an error lists."""


class RowFilter:
    """Filter of rows, and what it has seen."""

    def __init__(self, conditions: Sequence[str] = ()) -> None:
        """conditions: texts COLUMN=VALUE, the column dotted for a field within it. ValueError for another form."""
        self.conditions = tuple(conditions)
        self.wanted: dict[str, set[str]] = {}
        """Values to keep by column."""
        self.dropped = 0
        """Rows left out so far."""
        self.seen: dict[str, set[str]] = {}
        """Some values by column, of the columns that a table had."""
        for condition in conditions:
            column, mark, value = condition.partition("=")
            if not (column and mark and value):
                raise ValueError(f"{condition!r} names no rows: give COLUMN=VALUE, such as ability=math")
            self.wanted.setdefault(column, set()).add(value)

    def columns(self, table: Table) -> list[str]:
        """Return the columns of a table that it is filtered by."""
        found = [column for column in self.wanted if column in table.columns]
        for column in found:
            self.seen.setdefault(column, set())
        return found

    def keeps(self, row: dict[str, Any], columns: Sequence[str]) -> bool:
        """Return True if a row has one of the wanted values in each of the columns; count it otherwise."""
        for column in columns:
            value = str(cell(row, column))
            if len(self.seen[column]) < SHOWN:
                self.seen[column].add(value)
            if value not in self.wanted[column]:
                self.dropped += 1
                return False
        return True

    def check(self) -> None:
        """Raise ValueError if no file that was read has one of the columns: it may be misspelt."""
        if gone := [column for column in self.wanted if column not in self.seen]:
            raise ValueError(f"rows are to be kept by {gone[0]!r}, and no file has such a column")

    def __str__(self) -> str:
        return " ".join(self.conditions)

    @property
    def told(self) -> str:
        """Values of the columns, for an error about a file without a row to keep."""
        values = {column: sorted(one_line(value, 40) for value in some) for column, some in self.seen.items()}
        return "; ".join(f"{column!r} has {', '.join(some)}" for column, some in values.items())
