"""`toybandit reproduce`: reproduce figures of the papers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import parse_flags

if TYPE_CHECKING:
    from rich.table import Table

    from .registry import Reproduction

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
            progress.console.print(f"{figure.name}: {data.found}", highlight=False, soft_wrap=not console.is_terminal)
            progress.advance(task)
    console.print(f"{len(chosen)} figures; {flags.out}", highlight=False, soft_wrap=not console.is_terminal)
    if flags.page is not None:
        from .page import write_page

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
            raise ValueError(unknown("figure", name, FIGURES, "toybandit reproduce list shows the names"))
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
