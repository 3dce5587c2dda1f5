"""The table of an evaluation on a terminal, turned: a column a benchmark, a line a number."""

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from .records import Record
from .report import table


def show(records: Sequence[Record], ks: Sequence[int] = (), console: Console | None = None) -> None:
    """Print a column for each record."""
    headings, rows = table(records, ks)
    out = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    out.add_column(style="bold", no_wrap=True)
    for _ in rows:
        out.add_column(justify="right", no_wrap=True)
    for name, *cells in zip(headings, *rows, strict=True):
        out.add_row(name, *cells)
    (console or Console()).print(out)
