"""`llmtrain compare`: comparison of runs in a table and a figure.

llmtrain compare runs/demo/grpo runs/demo/entropic        two run folders
llmtrain compare verl.log trl/trainer_state.json runs/x   with logs of other trainers (docs/studies.md)
"""

from entrostat.logs.foreign.foreign_runs import HELP
from entrostat.settings.commandline import Arguments


def main(args: list[str]) -> int:
    """Compare runs in a table and a figure of entropy, reward and pass@k."""
    parser = Arguments(prog="llmtrain compare", description=main.__doc__, epilog=HELP)
    parser.add_argument("runs", nargs="+", help="run folders, or logs of other trainers")
    parser.add_argument("--out", default="compare.png", help="figure to write (.png, .svg or .pdf)")
    given = parser.parse_args(args)
    from rich.console import Console

    from ..studies.comparison import Run, figure, picture, table

    runs = [run for path in given.runs for run in Run.read_all(path)]
    out = picture(given.out)
    figure(runs, out)
    Console().print(table(runs))
    for run in runs:
        if run.imported:
            print(f"imported: {run.name}: {run.imported}")
    print(f"figure: {out}")
    return 0
