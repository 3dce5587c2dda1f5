"""Tables of pages as rows of numbers and text."""

import re
from typing import Any


def read_table(text: str, title: str) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the rows of the table under a heading, and the standard errors of its columns."""
    lines = [line for line in text.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines() if line[:1] == "|"]
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    parts = [name.partition(" ±") for name in header]
    errors = {name: float(error) for name, _, error in parts if error}
    return [dict(zip([name for name, _, _ in parts], map(value, row), strict=True)) for row in rows], errors


def value(cell: str) -> str | float:
    """Return a cell's number, or its text without code marks."""
    try:
        return float(cell)
    except ValueError:
        return cell.strip("`")


def leading(cell: str | float) -> float:
    """Return the number that a cell begins with; NaN if it has none."""
    if isinstance(cell, float):
        return cell
    found = re.match(r"-?\d*\.?\d+", cell)
    return float(found[0]) if found else float("nan")
