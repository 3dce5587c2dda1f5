"""`llmtrain diagnose`: what happened to the entropy of a run, and what to try, with the evidence for it.

llmtrain diagnose runs/countdown                run of llmtrain or toybandit
llmtrain diagnose verl.log --target 0.3         log of another trainer, whose controller has a target
llmtrain diagnose mine.csv --entropy ent/mean   log whose names are not known
"""

from entrostat.logs.foreign.foreign_runs import HELP
from entrostat.logs.foreign.metric_names import ENTROPY_HELP
from entrostat.settings.commandline import Arguments, writing


def main(args: list[str]) -> int:
    """Tell collapse, clipping, the law, control and pass@k of runs, and what to try, with its evidence."""
    parser = Arguments(prog="llmtrain diagnose", description=main.__doc__, epilog=HELP)
    parser.add_argument("runs", nargs="+", help="run folders, or logs of other trainers")
    parser.add_argument("--target", type=float, help="target entropy (nats) of a run whose log does not have it")
    parser.add_argument("--entropy", metavar="NAME", help=ENTROPY_HELP)
    parser.add_argument("--reward", metavar="NAME", help="logged metric that is the training reward")
    parser.add_argument(
        "--gap", metavar="NAME", help="logged metric that is the mean |log p| between engine and trainer (nats)"
    )
    parser.add_argument("--png", metavar="FILE", help="also draw entropy, reward and the events; one run")
    given = parser.parse_args(args)
    from entrostat.logs.diagnosis.facts import measure
    from entrostat.logs.diagnosis.sketch import sketch
    from entrostat.logs.diagnosis.words import text
    from entrostat.logs.forecast import told
    from entrostat.logs.foreign import units
    from entrostat.logs.foreign.metric_names import renamed
    from entrostat.logs.runlog import trained_steps

    from ..studies.comparison import Run, picture

    runs = [run for path in given.runs for run in Run.read_all(path)]
    if given.png and len(runs) > 1:
        raise ValueError(f"--png draws one run, not the {len(runs)} that are given: llmtrain compare draws several")
    for run in runs:
        print(f"{run.name}: {trained_steps(run.metrics)} steps\n")
        if run.imported:
            print(f"imported: {run.imported}\n")
        named = {"entropy": given.entropy, "reward": given.reward, "mismatch/logp_gap": given.gap}
        named = {ours: name for ours, name in named.items() if name}
        metrics = renamed(run.name, run.metrics, named)
        if converted := units.told(named):
            print(f"{converted}\n")
        facts = measure(metrics, run.config, given.target)
        print(f"{text(facts, sketch(metrics, facts.happened.marks))}\n")
        if given.png:
            from ..studies.diagnosis_figure import figure

            place = picture(given.png)
            with writing(place):
                figure(run.name, metrics, facts.happened, place)
            print(f"figure: {place}")
    for forecast in filter(None, map(told, given.runs)):
        print(f"{forecast}\n")
    return 0
