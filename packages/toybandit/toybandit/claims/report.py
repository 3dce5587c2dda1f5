"""How records are shown: a table in the terminal, JSON and Markdown in files."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from .registry import HOLDS, Record

COLUMNS = ("claim", "source", "assumption", "predicted", "measured", "verdict")


def cells(record: Record) -> tuple[str, ...]:
    verdict = record.verdict if record.as_expected else f"{record.verdict} (expected: {record.expected})"
    return record.name, record.source, record.assumption, record.predicted, record.measured, verdict


def table(records: Sequence[Record]) -> Table:
    """A table for the terminal; verdicts other than expected are red."""
    shown = Table(title="claim → assumption → predicted → measured → verdict", show_lines=True)
    for column in ("claim", *COLUMNS[2:]):
        shown.add_column(column, overflow="fold")
    for record in records:
        name, source, *rest, verdict = cells(record)
        colour = "red" if not record.as_expected else "green" if record.verdict == HOLDS else "yellow"
        shown.add_row(Text.assemble((name, "bold"), f"\n{source}"), *map(Text, rest), Text(verdict, style=colour))
    return shown


def markdown(records: Sequence[Record]) -> str:
    """The same as a Markdown table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *map(cells, records)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def write(records: Sequence[Record], folder: Path) -> None:
    """verify.json and verify.md in `folder`, which is made when missing."""
    folder.mkdir(parents=True, exist_ok=True)
    content = [asdict(record) | {"as_expected": record.as_expected} for record in records]
    (folder / "verify.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    (folder / "verify.md").write_text("# Claims, measured\n\n" + markdown(records))
