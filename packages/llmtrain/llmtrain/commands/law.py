"""`llmtrain law`: fit of R = −a·e^H + b to the reward of runs (The Entropy Mechanism, equation 6).

    llmtrain law runs/demo/grpo                                table, runs/demo/grpo/law.png, warnings
    llmtrain law runs/demo/* --out laws.png --json laws.json   several runs in one picture
    llmtrain law runs/x --against eval/pass@1                  another metric instead of the reward
    llmtrain law verl.log --entropy actor/entropy_loss         another metric as the entropy
    llmtrain law verl.log                                      the log of another trainer; figure verl.log.law.png

Works on runs of trainer and simulator, and on logs of other trainers (docs/studies.md).
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.table import Table

from entrostat.logs.foreign import units
from entrostat.logs.foreign.foreign_runs import HELP
from entrostat.logs.foreign.metric_names import ENTROPY_HELP, renamed
from entrostat.settings.commandline import Arguments, writing
from entrostat.settings.commandline_help import tell

from ..studies.comparison import Run, picture

if TYPE_CHECKING:
    from ..studies.law_fit import RunLaw

CURVES = {"exponential": "−a·e^H + b", "linear": "line in H", "quadratic": "parabola in H"}


def main(args: list[str]) -> int:
    """Fit R = −a·e^H + b to runs, test it as a prediction from their first part, and draw it."""
    parser = Arguments(prog="llmtrain law", description=main.__doc__, epilog=HELP)
    parser.add_argument("runs", nargs="+", help="run folders, or logs of other trainers")
    parser.add_argument("--against", default="reward", help="metric of metrics.jsonl instead of the reward")
    parser.add_argument("--entropy", metavar="NAME", help=ENTROPY_HELP)
    parser.add_argument("--share", type=float, default=0.15, help="share at the start of a run that predicts the rest")
    parser.add_argument("--out", help="one figure of all runs; by default law.png in each folder, FILE.law.png")
    parser.add_argument("--json", help="file to write all numbers to")
    given = parser.parse_args(args)
    from rich.console import Console

    from ..studies.law_figure import figure
    from ..studies.law_fit import fit_run

    named = {"entropy": given.entropy} if given.entropy else {}
    runs = {path: [_renamed(run, named) for run in Run.read_all(path)] for path in given.runs}
    laws = {path: [fit_run(run, given.against, given.share) for run in some] for path, some in runs.items()}
    found = [one for path in given.runs for one in laws[path]]
    pictures = {picture(given.out): found} if given.out else {_own(path): some for path, some in laws.items()}
    for path, some in pictures.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path):
            figure(some, path)
    if given.json:
        Path(given.json).parent.mkdir(parents=True, exist_ok=True)
        with writing(given.json):
            Path(given.json).write_text(json.dumps([to_json(one) for one in found], indent=2) + "\n")
    Console().print(table(found))
    for run in (run for some in runs.values() for run in some if run.imported):
        print(f"imported: {run.name}: {run.imported}")
    if converted := units.told(named):
        print(converted)
    for one in found:
        for text in one.warnings:
            tell(f"warning: {one.name}: {text}", sys.stderr)
    for path in pictures:
        print(f"figure: {path}")
    return 0


def _renamed(run: Run, named: Mapping[str, str]) -> Run:
    """Return a run with the metrics that the user names, {ours: theirs}, under entrostat's names."""
    return replace(run, metrics=renamed(run.name, run.metrics, named)) if named else run


def _own(path: str) -> Path:
    """Return the figure of the runs in a folder or file."""
    return Path(path) / "law.png" if Path(path).is_dir() else Path(f"{path}.law.png")


def table(found: "Sequence[RunLaw]") -> Table:
    """Return a table with one column per run, with 95% intervals."""
    out = Table(caption="[ , ]: 95% interval", caption_justify="left", box=SIMPLE, pad_edge=False)
    out.add_column("run", no_wrap=True)
    columns = [rows(one) for one in found]
    for one in found:
        out.add_column(one.name, justify="right")
    for name in columns[0]:
        out.add_row(name, *(column[name] for column in columns))
    return out


def rows(found: "RunLaw") -> dict[str, str]:
    """Return the table's cells for a run, by line."""
    law, prediction = found.law, found.prediction

    def held(value: float, interval: tuple[float, float]) -> str:
        return f"{value:.3f}\n\\[{interval[0]:.3f}, {interval[1]:.3f}]"

    curves = {
        f"{label}: adjusted R²\nAIC": f"{found.scores[key].adjusted_r2:.3f}\n{found.scores[key].aic:.1f}"
        for key, label in CURVES.items()
    }
    predicted = {
        "fitted to the first": "too few",
        f"predicted end, {found.against}": "",
        "measured end": f"{found.points.outcome[-1]:.3f}",
        "RMSE of the rest": "",
        "a constant instead": "",
        "its RMSE": "",
    }
    if prediction is not None:
        last = prediction.predicted[-1]
        end = f"{last:.3f}" if prediction.within else f"{last:.3g}, out of range"
        predicted |= {
            "fitted to the first": f"{prediction.law.n} points",
            f"predicted end, {found.against}": end,
            "RMSE of the rest": f"{prediction.rmse:{'.3f' if prediction.rmse < 1e3 else '.3g'}}",
            "a constant instead": f"{prediction.constant:.3f}",
            "its RMSE": f"{prediction.constant_rmse:.3f}",
        }
    return {
        "points": f"{law.n}",
        "a": held(law.a, law.a_interval),
        "b": held(law.b, law.b_interval),
        "ceiling b − a": held(law.ceiling, law.ceiling_interval),
        "R²": f"{law.r2:.3f}",
        "RMSE": f"{law.rmse:.3f}",
        **curves,
        **predicted,
    }


def to_json(found: "RunLaw") -> dict[str, Any]:
    """Return all numbers of a run's law as JSON values."""
    law, prediction = found.law, found.prediction
    return {
        "run": found.name,
        "against": found.against,
        **_plain(law._asdict()),
        "ceiling": law.ceiling,
        "alternatives": {name: _plain(score._asdict()) for name, score in found.scores.items()},
        "prediction": None
        if prediction is None
        else {
            "law": _plain(prediction.law._asdict()),
            "end": float(prediction.predicted[-1]),
            "measured_end": float(found.points.outcome[-1]),
            "rmse": prediction.rmse,
            "constant": prediction.constant,
            "constant_rmse": prediction.constant_rmse,
        },
        "warnings": list(found.warnings),
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with None for numbers that are not finite."""
    return {key: None if isinstance(x, float) and not math.isfinite(x) else x for key, x in values.items()}
