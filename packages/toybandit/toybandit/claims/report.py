"""Reports of records: a table in the terminal, a JSON file, and a Markdown page with pictures."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from .pictures import PICTURES
from .registry import HOLDS, Effort, Record
from .theorems import derived, symbols

COLUMNS = ("claim", "assumption", "predicted", "measured", "verdict")
INTRODUCTION = """# The theory, measured

Every claim of the papers that a bandit can test, with its measurement and its verdict. A verdict follows only from the
measurements below it. `±` is one standard error over runs. *False failure* is the probability that fresh seeds give
another verdict, from the standard errors and Student's t; it is 0 for statements about every instance or about
expectations, which are tested on random examples. Environments are those of `toybandit/environments.py`, with {states}
states, {rollouts} rollouts and {runs} runs unless a claim says otherwise; entropies are in nats.

    {command}

{count}
"""


def verdict_of(record: Record) -> str:
    """Return the verdict, followed by the expected verdict if the two differ."""
    return record.verdict if record.as_expected else f"{record.verdict} (expected: {record.expected})"


def doubt_of(record: Record) -> str:
    """Return the false-failure rate as text."""
    return f"{record.false_failure:.0e}" if record.false_failure else "0: deterministic"


def table(records: Sequence[Record]) -> Table:
    """Return a table for the terminal; unexpected verdicts are red."""
    shown = Table(title="claim → assumption → predicted → measured → verdict", show_lines=True)
    for column in COLUMNS:
        shown.add_column(column, overflow="fold")
    for record in records:
        colour = "red" if not record.as_expected else "green" if record.verdict == HOLDS else "yellow"
        shown.add_row(
            Text.assemble((record.name, "bold"), f"\n{record.paper}, {record.source}"),
            *map(Text, (record.assumption, record.predicted, record.measured)),
            Text(f"{verdict_of(record)}\n", style=colour).append(f"false failure {doubt_of(record)}", style="dim"),
        )
    return shown


def entry(record: Record, picture: str | None) -> str:
    """Return the page's section on one claim."""
    verdict = verdict_of(record)
    lines = [
        f"### {record.name}",
        "",
        f"**{verdict[0].upper()}{verdict[1:]}.** {' '.join(record.meaning.split())}",
        "",
        f"- **Claimed** ({record.source}): {record.predicted}",
        f"- **Assumption**: {record.assumption}",
        f"- **Measured**: {record.measured}",
        f"- **False failure**: {doubt_of(record)}",
        *derived(record.name, ".."),
        "",
    ]
    if picture is not None:
        lines += [f"![{PICTURES[record.name].caption}]({picture})", "", f"*{PICTURES[record.name].caption}*", ""]
    return "\n".join(lines)


def overview(records: Sequence[Record]) -> str:
    """Return a table of all verdicts, with links to the claims; heading addresses omit the dots of names."""
    lines = [f"[{r.name}](#{r.name.replace('.', '')}) | {r.paper} | {verdict_of(r)}" for r in records]
    return "\n".join(f"| {line} |" for line in ("claim | paper | verdict", "--- | --- | ---", *lines)) + "\n"


def page(records: Sequence[Record], effort: Effort, command: str, pictures: str) -> str:
    """Return the Markdown page; `pictures`: folder of the pictures relative to the page."""
    hold = sum(record.verdict == HOLDS for record in records)
    surprises = sum(not record.as_expected for record in records)
    doubt = max(record.false_failure for record in records)
    count = (
        f"{len(records)} claims, of which {hold} hold as stated and {surprises} have an unexpected verdict; "
        f"false failure at most {doubt:.0e}."
    )
    parts = [INTRODUCTION.format(command=command, count=count, **vars(effort)), overview(records), symbols()]
    for paper in dict.fromkeys(record.paper for record in records):
        parts.append(f"## {paper}\n")
        for record in records:
            if record.paper == paper:
                parts.append(entry(record, f"{pictures}/{record.name}.png" if record.name in PICTURES else None))
    return "\n".join(parts).rstrip() + "\n"


def is_full(folder: Path) -> bool:
    """Return True if the folder contains a page that was made without --quick."""
    path = folder / "theory.md"
    return path.exists() and not re.search(r"^    toybandit verify\b.* --quick\b", path.read_text(), re.MULTILINE)


def write(records: Sequence[Record], folder: Path, effort: Effort, command: str) -> None:
    """Write theory.md into `folder`, and claims.json and the pictures into its folder theory; create missing ones."""
    inside = folder / "theory"
    inside.mkdir(parents=True, exist_ok=True)
    content = [asdict(record) | {"as_expected": record.as_expected} for record in records]
    (inside / "claims.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    for record in records:
        if record.name in PICTURES:
            PICTURES[record.name].save(effort, inside / f"{record.name}.png")
    (folder / "theory.md").write_text(page(records, effort, command, inside.name))
