"""`toybandit reproduce`: reproduce figures of the papers."""

import html
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from entrostat.settings.commandline import parse_flags

from . import FIGURES, OUT_OF_REACH
from .registry import in_order

if TYPE_CHECKING:
    from rich.table import Table

    from .registry import Reproduction


COLUMNS = 2
INTRODUCTION = """# Figures of the papers, reproduced in a bandit

Every picture comes from the command under it, which also writes its table (CSV), its numbers and an SVG;
`toybandit reproduce all --page docs/figures.md` makes all of them and this page.
If the bandit does not show the paper's result, the text says so. After ± stands one standard error over seeds, by the
jackknife for fits and correlations; bands and whiskers reach two of them to either side, unless the text says another
range. In an order, a < b are two standard errors of their paired difference apart, a ≈ b are not.
"""


def write_page(page: Path, folder: Path) -> None:
    """Write `page` from the figures in `folder`, and copy their pictures into a folder beside the page, of its name.

    Raises ValueError if `folder` contains no figure.
    """
    made = [
        name for name in in_order(FIGURES) if (folder / f"{name}.json").exists() and (folder / f"{name}.png").exists()
    ]
    if not made:
        raise ValueError(f"{folder} holds no figure: name some to make them first")
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    cells = []
    for name in made:
        shutil.copyfile(folder / f"{name}.png", pictures / f"{name}.png")
        record = json.loads((folder / f"{name}.json").read_text())
        cells.append(_cell(record, f"{pictures.name}/{name}.png"))
    rows = ["<tr>\n" + "\n".join(cells[i : i + COLUMNS]) + "\n</tr>" for i in range(0, len(cells), COLUMNS)]
    beyond = "".join(f"| `{name}` | {OUT_OF_REACH[name]} |\n" for name in in_order(OUT_OF_REACH))
    page.write_text(
        f"{INTRODUCTION}\n<table>\n"
        + "\n".join(rows)
        + "\n</table>\n\n## Figures that a bandit cannot show\n\n| figure | reason |\n| --- | --- |\n"
        + beyond
    )


def _cell(record: dict[str, str], picture: str) -> str:
    keys = ("shows", "found", "source", "command", "sample", "changes_if")
    shows, found, source, command, sample, changes_if = (html.escape(record[key]) for key in keys)
    return (
        f'<td width="{100 // COLUMNS}%" valign="top">\n<b>{source}</b>: {shows}<br>\n'
        f'<img src="{picture}" alt="{shows}" width="100%"><br>\n{found}<br>\n'
        f"<i>{sample}. Would change if {changes_if}.</i><br>\n<code>{command}</code>\n</td>"
    )


DESCRIPTION = """Reproduce figures of the papers in the bandit.

Example: toybandit reproduce entropy-mechanism-2 revisiting-3 --out runs/figures

NAME is a figure, all, or list, which prints the available figures and those that a bandit cannot show.
Writes NAME.svg, NAME.png, NAME.csv (data drawn) and NAME.json (numbers, findings, versions)."""


@dataclass(frozen=True, kw_only=True)
class ReproduceFlags:
    """Flags of `toybandit reproduce`."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Figure names, all, or list."""
    quick: bool = False
    """Fewer runs, states and rollouts: shapes, not numbers to quote."""
    out: Path = Path("runs/figures")
    """Output folder."""
    overwrite: bool = False
    """With --quick: overwrite figures that were made without it."""
    page: Path | None = None
    """Also write this Markdown page with all figures in --out; pictures go into a folder beside it."""


def reproduce_command(args: Sequence[str]) -> int:
    """Reproduce figures of the papers: list, all, or their names."""
    flags = parse_flags(ReproduceFlags, args, prog="toybandit reproduce", description=DESCRIPTION)
    if not flags.names:
        raise ValueError("name a figure, or all; toybandit reproduce list shows the names")
    from rich.console import Console

    console = Console()
    if flags.names == ("list",):
        for table in listing():
            console.print(table)
        return 0
    from . import FULL, QUICK
    from .files import is_full, save

    effort = QUICK if flags.quick else FULL
    chosen = choose(flags.names)
    full = [figure.name for figure in chosen if is_full(figure.name, flags.out)]
    if flags.quick and full and not flags.overwrite:
        raise ValueError(f"{flags.out} holds {full[0]} without --quick: choose another --out, or pass --overwrite")
    from rich.progress import Progress

    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("figures", total=len(chosen))
        for figure in chosen:
            progress.update(task, description=figure.name)
            data = figure(effort)
            save(figure, data, effort, flags.out)
            progress.console.print(f"{figure.name}: {data.found}", highlight=False, soft_wrap=True)
            progress.advance(task)
    console.print(f"{len(chosen)} figures; {flags.out}", highlight=False, soft_wrap=True)
    if flags.page is not None:
        write_page(flags.page, flags.out)
        console.print(str(flags.page), highlight=False, soft_wrap=True)
    return 0


def choose(names: Sequence[str]) -> "list[Reproduction]":
    """Return the figures `names`, each once. Raise ValueError on an unknown figure or one a bandit cannot show."""
    from . import FIGURES, OUT_OF_REACH
    from .registry import in_order

    if tuple(names) == ("all",):
        return [FIGURES[name] for name in in_order(FIGURES)]
    for name in names:
        if name in OUT_OF_REACH:
            raise ValueError(f"a bandit cannot show {name}: {OUT_OF_REACH[name]}")
        if name not in FIGURES:
            raise ValueError(f"unknown figure {name!r}; toybandit reproduce list shows the names")
    return [FIGURES[name] for name in dict.fromkeys(names)]


def listing() -> "tuple[Table, Table]":
    """Return tables of the available figures and of those that a bandit cannot show."""
    from rich.table import Column, Table

    from . import FIGURES, OUT_OF_REACH
    from .registry import in_order

    there = Table(Column("name", no_wrap=True), "source", "shows", title="figures")
    for name in in_order(FIGURES):
        there.add_row(name, FIGURES[name].source, FIGURES[name].shows)
    beyond = Table(Column("name", no_wrap=True), "reason", title="figures that a bandit cannot show")
    for name in in_order(OUT_OF_REACH):
        beyond.add_row(name, OUT_OF_REACH[name])
    return there, beyond
