"""`toybandit sweep`: simulate a grid, resumable, into one parquet with a row a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from entrostat.commandline import parse_flags

if TYPE_CHECKING:
    from .cells import Cell
    from .measure import Row

DESCRIPTION = """Simulate a grid of environments, controllers, hyperparameters, targets and seeds.

Example: toybandit sweep --grid examples/grids/gains.yaml --out runs/gains --workers 2

Writes sweep.parquet, a row a run: what was asked for (hyperparameters as args.NAME), entropy, error of the target,
settling time, reward, and the gap to the reward-entropy frontier at the run's own entropy.

What is finished lies in parts/ and is not simulated again: after an interruption, or with a grid that has grown, the
same command simulates what is missing and what could not run. Rows of another version of the simulator are not told
apart: give it another --out."""


@dataclass(frozen=True, kw_only=True)
class SweepFlags:
    """Flags of `toybandit sweep`."""

    grid: Path
    """YAML file whose lists multiply: seeds, env, target, lr, ..., and controller with hyperparameters."""
    out: Path = Path("runs/sweep")
    """Folder for sweep.parquet and parts/."""
    workers: str = "1"
    """Number of processes, or ray: a Ray cluster, the running one or else one on this machine."""
    batch: int = 128
    """Most runs that are simulated side by side, and that an interruption can lose for each worker."""
    overwrite: bool = False
    """Write over a sweep.parquet with runs that this grid lacks; parts/ keeps them."""


def sweep_command(args: Sequence[str]) -> int:
    """Simulate a grid of configurations into one parquet."""
    flags = parse_flags(SweepFlags, args, prog="toybandit sweep", description=DESCRIPTION)
    if flags.batch < 1:
        raise ValueError(f"batch must be at least 1, not {flags.batch}")
    from .grid import read_grid

    sweep(read_grid(flags.grid), flags.out, workers=flags.workers, batch=flags.batch, overwrite=flags.overwrite)
    return 0


def sweep(
    cells: "Sequence[Cell]", out: Path, *, workers: str = "1", batch: int = 128, overwrite: bool = False
) -> "list[Row]":
    """Simulate the cells that the folder `out` does not hold yet, and merge; a row for each cell, in order.

    Prints what was done and why some could not run. Raises ValueError on workers that there are not, and unless
    `overwrite` on a table there that has other runs too.
    """
    from rich.console import Console
    from rich.progress import Progress

    from .cells import plan_calls
    from .running import run_calls
    from .store import Store

    console = Console()
    store = Store(out)
    surplus = store.surplus(cells)
    if surplus and not overwrite:
        raise ValueError(f"{store.path} has {surplus} other runs: choose another --out, or pass --overwrite")
    missing = [cell for cell in cells if cell not in store]
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("runs", total=len(cells), completed=len(cells) - len(missing))
        for rows in run_calls(plan_calls(missing, batch), workers):
            store.add(rows)
            progress.advance(task, len(rows))
    merged = store.merge(cells)
    failed = [row for row in merged if row["error"]]
    told = f", {len(failed)} could not run (column error)" if failed else ""
    console.print(f"{len(cells)} runs, {len(missing)} of them new{told}; {store.path}", highlight=False, soft_wrap=True)
    return merged
