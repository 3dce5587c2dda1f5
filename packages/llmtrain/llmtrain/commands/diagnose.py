"""`llmtrain diagnose`: what happened to the entropy of a run, and what to try, with the evidence for it.

llmtrain diagnose runs/countdown                run of llmtrain or toybandit
llmtrain diagnose verl.log --target 0.3         log of another trainer, whose controller has a target
"""

from entrostat.logs.foreign.foreign_runs import HELP
from entrostat.settings.commandline import Arguments


def main(args: list[str]) -> int:
    """Tell collapse, clipping, the law, control and pass@k of runs, and what to try, with its evidence."""
    parser = Arguments(prog="llmtrain diagnose", description=main.__doc__, epilog=HELP)
    parser.add_argument("runs", nargs="+", help="run folders, or logs of other trainers")
    parser.add_argument("--target", type=float, help="target entropy (nats) of a run whose log does not have it")
    given = parser.parse_args(args)
    from entrostat.logs.diagnosis.facts import measure
    from entrostat.logs.diagnosis.words import text

    from ..studies.comparison import Run

    for run in (run for path in given.runs for run in Run.read_all(path)):
        print(f"{run.name}: {len(run.metrics)} steps\n")
        if run.imported:
            print(f"imported: {run.imported}\n")
        print(f"{text(measure(run.metrics, run.config, given.target))}\n")
    return 0
