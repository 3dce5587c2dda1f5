"""`llmtrain leaderboard`: train the same model under every controller, and write tables and a picture of the results.

    llmtrain leaderboard --preset countdown-cpu --target 0.45 --seeds 3 --workers 2
    llmtrain leaderboard --config mine.yaml --only grpo clip_higher steer entropic --out runs/mine
    llmtrain leaderboard --preset countdown-cpu --target 0.3 --only grpo "kl_ref beta=0.02,0.05,0.1" thermostat

The last one compares at equal entropy: for a controller with several values of a hyperparameter, results are
interpolated between the first two values whose entropies enclose the target.

All runs share the settings, which are those of train. After a stop, the same command resumes: finished runs are kept,
others continue from their checkpoints. When all runs are finished, it rewrites the page in seconds. With --logs FOLDER
it also keeps each finished run there in a few kilobytes, and needs nothing else of a finished run.
"""

import shlex
from pathlib import Path

from entrostat.settings.commandline import Arguments

from ..settings.config import TrainConfig
from ..settings.presets import read_config

PROG = "llmtrain leaderboard"


def main(args: list[str]) -> int:
    """Train under every controller, and rank the controllers."""
    parser = Arguments(
        prog=PROG,
        description=__doc__,
        usage=f"{PROG} FLAGS OF TRAIN [--seeds N] [--workers N] [--only 'NAME KEY=VALUE,...' ...] [--page FILE] "
        "[--logs FOLDER]",
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs per controller, from seed 0 (3)")
    parser.add_argument("--workers", type=int, default=1, help="parallel runs; they share a GPU (1)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="controllers, optionally with values; all by default")
    parser.add_argument("--page", type=Path, help="Markdown file to write; leaderboard.md in --out by default")
    parser.add_argument("--logs", type=Path, help="folder of compact logs: runs found there are not trained again")
    given, rest = parser.parse_known_args(args)
    for name in ("seeds", "workers"):
        if getattr(given, name) < 1:
            raise ValueError(f"--{name} must be at least 1; got {getattr(given, name)}")
    base = read_config(rest, PROG, out="runs/leaderboard")
    if base.controller != TrainConfig.controller or base.controller_args:
        raise ValueError(f"{PROG} chooses controllers and their hyperparameters: use --only for --controller and --set")
    from entrostat.about.lineup import asked, entries

    wanted = entries() if given.only is None else asked(given.only)
    from ..studies.comparison import Run
    from ..studies.leaderboard_page import page
    from ..studies.leaderboard_picture import draw
    from ..studies.leaderboard_runs import configurations, train_all
    from ..studies.standings import Standing, by_entropy, of_another_start, standing
    from ..training.check import check

    out = Path(base.out)
    runs = [(entry, configurations(base, entry, range(given.seeds), out)) for entry in wanted]
    for _, configs in runs:
        check(configs[0])
    in_turn = [config for turn in zip(*(configs for _, configs in runs), strict=True) for config in turn]
    trained, failures = train_all(in_turn, given.workers, given.logs)  # seed by seed
    standings: list[Standing] = []
    read: dict[str, list[Run]] = {}
    for entry, configs in runs:
        error = next((failures[config.out] for config in configs if config.out in failures), "")
        if error:
            standings.append(Standing(entry=entry, error=error, values={}))
            continue
        found = [trained[config.out] for config in configs]
        standings.append(standing(entry, found, read))
        read[entry.name] = found
    if not read:
        raise ValueError(f"no controller could be trained: {standings[0].error}")
    path = given.page or out / "leaderboard.md"
    metrics = ("reward", f"pass@{base.eval.k}")
    others = of_another_start(standings)
    alike = [standing for standing in standings if standing.entry.name not in others]
    laws = [law for metric in metrics if (law := by_entropy(alike, metric))]
    picture = path.with_suffix("") / "entropy.png"
    draw(standings, metrics, laws, picture, base.target if isinstance(base.target, float) else None)
    told = f"{PROG} {shlex.join(args)}"
    path.write_text(page(standings, laws, base, told, f"{path.stem}/{picture.name}"))
    print(path)
    return 1 if failures else 0
