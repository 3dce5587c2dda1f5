"""`toybandit sweep`: simulate a grid into one parquet file with a row per run; resumable."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from entrostat.settings.allowed import PositiveInt
from entrostat.settings.commandline import parse_flags

if TYPE_CHECKING:
    from .cells import Cell
    from .measure import Row

DESCRIPTION = """Simulate a grid of environments, controllers, hyperparameters, targets and seeds.

Example: toybandit sweep --grid examples/grids/gains.yaml --out runs/gains --workers 2

Writes sweep.parquet with a row per run: its settings (hyperparameters as args.NAME), entropy, error of the target,
settling time, reward, and the gap to the reward-entropy frontier at the run's own entropy.

If exactly two numeric settings vary (besides seeds), such as lr and group, it also prints a table of how the runs end,
and writes it as phase.md with a phase diagram, phase.png: a panel per controller and target.

Finished runs are in parts/ and are not simulated again: after an interruption, or with a larger grid, the same command
simulates missing and failed runs. It cannot recognise rows of another version of the simulator: use another --out."""

SPEED = 3600.0
"""Period of the speed that the time left is estimated from, seconds; a call can take minutes."""
PRINTED = 100
"""Most rows of tables to print; a longer phase.md is only written."""


@dataclass(frozen=True, kw_only=True)
class SweepFlags:
    """Flags of `toybandit sweep`."""

    grid: Path
    """YAML file whose lists multiply: seeds, env, target, lr, ..., and controller with hyperparameters."""
    out: Path = Path("runs/sweep")
    """Folder for sweep.parquet and parts/."""
    workers: str = "1"
    """Number of processes, or ray for a Ray cluster: the running one, else a new one on this machine."""
    batch: PositiveInt = 128
    """Upper limit for runs simulated side by side, and so for the runs per worker that an interruption loses."""
    overwrite: bool = False
    """Overwrite a sweep.parquet with runs that this grid lacks; parts/ keeps them."""
    map: Literal["entropy", "reward", "error"] | None = None
    """Number that phase.png shows: final entropy, final reward, or distance from the target. Default: error if all
    controllers have a target, else entropy."""


def sweep_command(args: Sequence[str]) -> int:
    """Simulate a grid of configurations into one parquet file."""
    flags = parse_flags(SweepFlags, args, prog="toybandit sweep", description=DESCRIPTION)
    from entrostat.by_name import has_target

    from .grid import read_grid

    cells = read_grid(flags.grid)
    if flags.map == "error" and not any(has_target(name) for name in {cell.config.controller for cell in cells}):
        raise ValueError("--map error needs a controller with a target")
    rows = sweep(cells, flags.out, workers=flags.workers, batch=flags.batch, overwrite=flags.overwrite)
    phase_diagram(cells, rows, flags.out, flags.map)
    return 0


def phase_diagram(cells: "Sequence[Cell]", rows: "Sequence[Row]", out: Path, shown: str | None = None) -> None:
    """Print how the runs end over two settings, and write phase.md and phase.png.

    If more than two numeric settings vary, or fewer although a number to show was named, print which.
    """
    from . import phase

    panels = phase.panels(cells, rows)
    refusal, most = phase.left_out(cells)
    if refusal and (panels or shown or most > 2):
        print(refusal)
    if not panels:
        return
    from .phase_picture import draw

    picture, page = out / "phase.png", out / "phase.md"
    draw(panels, shown or ("error" if all(panel.has_target for panel in panels) else "entropy"), picture)
    page.write_text(phase.page(panels, picture.name))
    if sum(len(panel.points) for panel in panels) <= PRINTED:
        print("\n".join(f"\n{panel.title}\n{phase.table(panel)}" for panel in panels) + "\n")
    print(f"{page}, {picture}")


def sweep(
    cells: "Sequence[Cell]", out: Path, *, workers: str = "1", batch: int = 128, overwrite: bool = False
) -> "list[Row]":
    """Simulate the cells missing from the folder `out`, merge, and return a row for each cell, in order.

    Prints a summary with the number of failed runs. Raises ValueError on invalid workers and, without `overwrite`, if
    the table in `out` has other runs too.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from .cells import plan_calls
    from .running import run_calls
    from .store import Store

    console = Console()
    store = Store(out)
    surplus = store.surplus(cells)
    if surplus and not overwrite:
        raise ValueError(f"{store.path} has {surplus} other runs: choose another --out, or pass --overwrite")
    missing = [cell for cell in cells if cell not in store]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, transient=True, speed_estimate_period=SPEED) as progress:
        task = progress.add_task("runs", total=len(cells), completed=len(cells) - len(missing))
        for rows in run_calls(plan_calls(missing, batch), workers):
            store.add(rows)
            progress.advance(task, len(rows))
    merged = store.merge(cells)
    failed = [row for row in merged if row["error"]]
    told = f", {len(failed)} could not run (column error)" if failed else ""
    console.print(f"{len(cells)} runs, {len(missing)} of them new{told}; {store.path}", highlight=False, soft_wrap=True)
    return merged
