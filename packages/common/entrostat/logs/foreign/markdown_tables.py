"""Tables in the text of a Markdown file, such as notes or a pasted report: a run each, with the heading above it.

    ## Seed 1, clip_higher

    | step | entropy | **reward** |
    |-----:|--------:|-----------:|
    | 10   | 1.43    | **0.31**   |

Tables without a column of steps are passed over.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from .rows import LimitedFile, Row, step_names
from .wandb_tables import header_of, is_rule, read_table

HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)[\s#]*")
FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
"""Line at the beginning and the end of a block of code, whose comments are no headings."""
EMPHASIS = re.compile(r"(\*\*|__|`)(.+?)\1")
"""Marks around the text of a cell: bold, code."""


class Table(NamedTuple):
    """Table of a Markdown file."""

    heading: str
    """Text of the heading above it; empty without one."""
    lines: list[str]
    """Its header, the line under it, and its rows."""


def is_markdown(head: bytes) -> bool:
    """Return True if the first bytes of a file have a table with steps, below other text."""
    return any(True for _ in _tables(iter(head.decode("utf-8", "replace").splitlines(keepends=True))))


def read_markdown(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows of the tables with steps. Raises ValueError if one of them cannot be read."""
    tables = [*_tables(file.lines())]
    names = [table.heading for table in tables]
    for at, table in enumerate(tables):
        name = table.heading if names.count(table.heading) == 1 else f"{table.heading or 'table'} ({at + 1})"
        for row in read_table(map(_bare, table.lines)):
            yield row._replace(run=row.run or name) if len(tables) > 1 else row


def _tables(lines: Iterator[str]) -> Iterator[Table]:
    """Yield the tables that have a column of steps, in order."""
    heading, above, code = "", "", False
    rows: list[str] = []
    for line in chain(lines, [""]):  # an end for a table at the end
        if rows and "|" in line:
            rows.append(line)
            continue
        if rows and step_names(header_of(_bare(rows[0]).encode())):
            yield Table(heading, rows)
        rows = []
        code ^= FENCE.match(line) is not None
        if not code and (found := HEADING.fullmatch(line)):
            heading = found[1]
        elif "|" in above and is_rule(line) and line.count("|") == above.count("|"):
            rows = [above, line]
        above = line


def _bare(line: str) -> str:
    """Return a line of a table without the marks around the text of its cells."""
    return EMPHASIS.sub(r"\2", line)
