"""`toybandit forecast`: the order of rules in a language model, from the first steps of one run under plain GRPO."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from entrostat.logs.forecast import beside
from entrostat.logs.forecast import read as read_forecast
from entrostat.logs.foreign.foreign_runs import read_path
from entrostat.logs.foreign.metric_names import renamed
from entrostat.logs.runlog import read_metrics
from entrostat.settings.commandline import parse_flags, writing
from entrostat.settings.plain_yaml import load_yaml

from ..run import PLAIN, SAME

DESCRIPTION = """Expect which rules end higher in held-out reward and pass@k, from the start of one run.

Example: toybandit forecast --like runs/countdown --first 60 --total 480

Reads a run of llmtrain or another trainer's log (see llmtrain diagnose) under plain GRPO, fits the environment
`features` to its entropy, reward and evaluations, and runs every rule in it. Takes a core ten to twenty minutes; no
model is needed. docs/predict.md has how often such forecasts were right. A controller's name alone stands for its
entries in the leaderboards; grpo is always among the rules."""
if TYPE_CHECKING:
    from .observed import Observed
    from .outlook import Outlook

OF_SET = re.compile(r"eval/([^@]+)/(?:avg|pass)@\d{1,6}")
"""Metric of an evaluation on one of several sets of problems."""
RULES = (
    "grpo",
    "clip_higher",
    "clip_cov k=0.02",
    "kl_ref beta=0.01,0.05",
    "entropy_bonus coef=0.005,0.05",
    "entropic auto=true target=0.5x",
    "thermostat target=0.25x,0.5x,0.8x",
    "thermostat mode=anchor target=0.25x,0.5x",
)


@dataclass(frozen=True, kw_only=True)
class ForecastFlags:
    """Flags of `toybandit forecast`."""

    like: tuple[Path, ...]
    """Run folder, or log of another trainer; several that differ in their seed alone are averaged."""
    rules: Annotated[tuple[str, ...], tyro.conf.arg(metavar="'NAME KEY=VALUE,...'")] = RULES
    """Rules, each with values to try; 0.5x is half of the entropy at the start."""
    total: int | None = None
    """Steps of the whole run; by default those that were logged."""
    first: int | None = None
    """Steps of the log to read; by default all."""
    entropy: str | None = None
    """Logged metric that is the policy's entropy (nats)."""
    reward: str | None = None
    """Logged metric that is the share of right answers in training."""
    evaluation: str | None = None
    """Set of held-out problems, such as math where eval/math/pass@8 is logged; by default eval/pass@k itself."""
    run: str | None = None
    """Run of a file that holds several."""
    tries: Annotated[int, "[10, 100000]"] = 300
    """Simulations of each search for an environment."""
    fits: Annotated[int, "[2, 100]"] = 4
    """Searches; their environments are all used."""
    seeds: Annotated[int, "[2, 1000]"] = 8
    """Runs of each rule in each environment."""
    json: Path | None = None
    """File to write; by default forecast.json in the run, or LOG.forecast.json, where llmtrain diagnose finds it."""


def forecast_command(args: Sequence[str]) -> int:
    """Expect which rules end higher, from one run's first steps."""
    flags = parse_flags(ForecastFlags, args, prog="toybandit forecast", description=DESCRIPTION)
    from rich.console import Console
    from rich.progress import Progress

    from entrostat.about.lineup import asked

    from .fit import fit
    from .observed import observe, together
    from .outlook import look_ahead
    from .words import alike, notes, table

    if not flags.like:
        raise ValueError("--like needs a run folder or a log")
    if len({path.resolve() for path in flags.like}) < len(flags.like):
        raise ValueError("--like names a run twice")
    path = flags.json or beside(flags.like[0])
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: --json needs a file in a folder that exists")
    if path.exists():
        read_forecast(path)  # refuses to write over anything else
    wanted = asked(("grpo", *flags.rules))
    named = flags.reward is not None
    seen = together([observe(one, total=flags.total, first=flags.first, named=named) for one in read(flags)])
    console = Console()
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("environments", total=flags.fits)
        fits = []
        for seed in range(flags.fits):
            fits.append(fit(seen, tries=flags.tries, seed=seed))
            progress.advance(task)
        task = progress.add_task("rules", total=len(wanted))
        ahead = []
        for entry in wanted:
            ahead.append(look_ahead(entry, fits, range(flags.seeds), seen.k))
            progress.advance(task)
    said = notes(seen, fits)
    like = alike(seen, fits)
    console.print(table(ahead, seen.k, like))
    for line in said:
        console.print(line, highlight=False, soft_wrap=not console.is_terminal)
    with writing(path):
        path.write_text(json.dumps(written(ahead, seen, like, said), indent=2) + "\n", encoding="utf-8")
    console.print(path, highlight=False, soft_wrap=True)
    return 0


def written(ahead: Sequence["Outlook"], seen: "Observed", like: bool, said: Sequence[str]) -> dict[str, Any]:
    """Return a forecast as it is stored: a result is its value, the difference from GRPO and half its interval.

    like: an environment does what the run did; without one, no rule is told apart.
    """
    from .words import FACTOR, difference, name_of

    rules = []
    for one in ahead:
        row: dict[str, Any] = {"rule": name_of(one.entry), "entropy": rounded(one.entropy.mean())}
        for name, here, there in (("reward", one.reward, ahead[0].reward), ("pass", one.passed, ahead[0].passed)):
            value, error = difference(here, there)
            row[name] = [rounded(x) for x in (here.mean(), value, FACTOR * error)]
        rules.append(row)
    told = {"k": seen.k, "steps": seen.steps, "total": seen.total, "like": like}
    return {**told, "rules": rules, "notes": list(said)}


def rounded(value: float) -> float:
    """Return a number with the digits that it can tell."""
    return round(float(value), 4)


def read(flags: ForecastFlags) -> list[list[dict[str, Any]]]:
    """Return the steps of all runs, under entrostat's names.

    Raises ValueError on a file that is no run or holds several, and on a run under a controller.
    """
    named = {ours: name for ours, name in (("entropy", flags.entropy), ("reward", flags.reward)) if name}
    found = []
    for path in flags.like:
        metrics = run_at(path, flags.run)
        found.append(evaluated(path.name, renamed(path.name, metrics, named), flags.evaluation))
    return found


def run_at(path: Path, name: str | None) -> list[dict[str, Any]]:
    """Return the steps of the run in a folder, or of the run of that name in another trainer's log."""
    if (path / "config.yaml").is_file():
        controller = load_yaml(path / "config.yaml").get("controller", PLAIN)
        if controller not in SAME:
            raise ValueError(f"{path} trained under {controller!r}: a forecast starts from a run under plain {PLAIN}")
        return read_metrics(path)
    runs = read_path(path)
    chosen = [run for run in runs if name in (None, run.name)]
    if len(chosen) != 1:
        raise ValueError(f"{path} holds {len(runs)} runs: name one with --run: {', '.join(run.name for run in runs)}")
    return chosen[0].metrics


def evaluated(run: str, metrics: list[dict[str, Any]], name: str | None) -> list[dict[str, Any]]:
    """Return the steps with the evaluations on one set of problems as eval/avg@k and eval/pass@k.

    Raises ValueError if a run has several sets and none is named, or not that one.
    """
    logged = set[str]().union(*metrics)
    sets = sorted({found[1] for metric in logged if (found := OF_SET.fullmatch(metric))})
    if name is None:
        if sets and not any(metric.startswith(("eval/avg@", "eval/pass@")) for metric in logged):
            raise ValueError(f"{run} has evaluations of {', '.join(sets)}: name one with --evaluation")
        return metrics
    if name not in sets:
        raise ValueError(f"{run} has no evaluation of {name!r}; it has {', '.join(sets) or 'none by name'}")
    renames = {f"eval/{name}/{rest}": f"eval/{rest}" for rest in {m.rpartition("/")[2] for m in logged}}
    return [{renames.get(metric, metric): value for metric, value in line.items()} for line in metrics]
