"""Run logs as a part of a page: compared in one picture with the words of page Runs, or listed, a picture each."""

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..shared import charts, run_folder
from ..views.runs import run_curves, runs, runs_parts
from ..views.runs.run_curves import Curve
from ..views.runs.run_log import Log
from .curve_data import DIGITS, coloured, legend, rounded
from .whole_page import Section, as_json

SCRIPTS = ("page.js", "curves.js", "runs.js")
SMOOTHING = runs.SMOOTHING
INDEX_POINTS = 120
"""Upper limit for the points of a line in the index."""
AXIS = "step"

Groups = Mapping[str, Sequence[Log]]


def found(paths: Sequence[Path], root: Path | None = None) -> list[Log]:
    """Return the runs that files and folders hold, named from `root`, by default the folder that they share.

    Raises ValueError in one line if there is none in one of them, or one cannot be read.
    """
    logs: dict[str, Log] = {}
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path} does not exist: name a run's folder or another trainer's log")
    real = [path.resolve() for path in paths]
    root = (root or Path(os.path.commonpath([path.parent for path in real]))).resolve()
    for given, path in zip(paths, real, strict=True):
        names = _names(root, path)
        if not names:
            raise ValueError(f"{given} holds no run: no config.yaml with a metrics.jsonl, and no other trainer's log")
        for name in names:
            try:
                logs[name] = runs.read(root, name)
            except OSError as error:
                raise ValueError(f"{name}: {runs.unreadable(error)}") from None
    return list(logs.values())


def _names(root: Path, path: Path) -> list[str]:
    """Return the names from `root` of the runs in a file or folder."""
    if path.is_dir():
        there = path.relative_to(root)
        return [(there / name).as_posix() for name in run_folder.names(path)]
    there = path.parent.relative_to(root)
    names = run_folder.names(path.parent)
    return [(there / name).as_posix() for name in names if name.partition(run_folder.OF_A_FILE)[0] == path.name]


def compared(logs: Sequence[Log]) -> Section:
    """Return the part that compares runs: one picture, who ends highest as far as it can be told, final values.

    Raises ValueError in one line if there are more experiments than colours, or no metric to compare.
    """
    groups = run_curves.experiments(logs)
    if len(groups) > runs.MOST:
        raise ValueError(
            f"--compare takes {runs.MOST} experiments at most, not {len(groups)}: there are no more colours"
        )
    panels = _panels(logs, groups)
    verdicts, notes = [], []
    for number, (metric, lines) in enumerate(panels.items()):
        verdict, *others = runs.notice({metric: lines}, groups, AXIS).split("\n\n")
        verdicts.append(_of_metric("div", number, escape(verdict)))
        notes.append(_of_metric("div", number, "".join(f"<p>{escape(note)}</p>" for note in others)))
    data = {
        "metrics": [run_curves.TITLES.get(metric, metric) for metric in panels],
        "pictures": [[_lines(lines, list(groups), run_curves.POINTS) for lines in panels.values()]],
    }
    html = f"""<section id="compare" class="runs">
<h1>{escape(_title(groups))}</h1>
{_metrics("compare", panels)}
<svg role="img" class="curves"></svg>
{coloured("compare", list(groups))}{legend(groups, controls=True)}
<div class="verdict" role="status" aria-live="polite">{"".join(verdicts)}</div>
{_smoothing("compare")}
<div class="more">
{"".join(notes)}
<p>The words are about all runs and unsmoothed numbers: neither the boxes nor the slider change them.</p>
{_table(logs, list(panels))}
</div>
<script type="application/json">{as_json(data)}</script>
</section>"""
    return Section(name="compare", title="Compare", html=html, scripts=SCRIPTS, told=f"{len(logs)} runs compared")


def index(logs: Sequence[Log]) -> Section:
    """Return the part that lists runs, each experiment with its curve. Raises ValueError if no metric can be drawn."""
    groups = run_curves.experiments(logs)
    panels = _panels(logs, groups)
    titles = [run_curves.TITLES.get(metric, metric) for metric in panels]
    cards, pictures = [], []
    for name, group in groups.items():
        own = {metric: [line for line in lines if line.name == name] for metric, lines in panels.items()}
        pictures.append([_lines(lines, list(groups), INDEX_POINTS) for lines in own.values()])
        numbers = "".join(_of_metric("span", number, escape(_ends(lines))) for number, lines in enumerate(own.values()))
        state = ", ".join(dict.fromkeys(f"{log.state}, step {log.last_step}" for log in group))
        cards.append(f"""<article><h2>{escape(name)}</h2>
<p class="source">{escape(state)}</p><p>{numbers}</p><svg role="img" class="curves"></svg></article>""")
    html = f"""<section id="runs" class="runs">
<h1>{len(logs)} runs, {len(groups)} experiments</h1>
{coloured("runs", list(groups))}
{_metrics("runs", panels)}
{_smoothing("runs")}
<div class="cards">{"".join(cards)}</div>
<script type="application/json">{as_json({"metrics": titles, "pictures": pictures})}</script>
</section>"""
    return Section(name="runs", title="Runs", html=html, scripts=SCRIPTS, told=f"{len(logs)} runs listed")


def _title(groups: Groups) -> str:
    names = list(groups)
    return " against ".join(names) if len(names) == 2 else f"{len(names)} experiments" if names[1:] else names[0]


def _panels(logs: Sequence[Log], groups: Groups) -> dict[str, list[Curve]]:
    """Return the unsmoothed lines of the metrics that page Runs shows first, without metrics that nothing logged."""
    metrics = runs_parts.metrics_control(logs).default
    found = {metric: run_curves.curves(groups, metric, AXIS, 0) for metric in metrics}
    found = {metric: lines for metric, lines in found.items() if lines}
    if not found:
        raise ValueError(f"none of these runs has logged {', '.join(metrics)}: there is nothing to draw")
    return found


def _lines(lines: Sequence[Curve], names: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return lines as data for `drawn` of curves.js."""
    found = []
    for line in lines:
        at = charts.thinned(len(line.x), most)
        ends = {
            name: rounded(end[at], DIGITS) for name, end in (("low", line.low), ("high", line.high)) if end is not None
        }
        rows = [rounded(row[at], DIGITS) for row in line.raw]
        found.append({"style": names.index(line.name), "x": rounded(line.x[at]), "rows": rows, **ends})
    return found


def _ends(lines: Sequence[Curve]) -> str:
    """Return the first and the last value of a line, in words; of several seeds, of their mean."""
    if not lines:
        return "not logged"
    raw = lines[0].raw
    seeds = f", mean of {len(raw)} seeds" if len(raw) > 1 else ""
    return f"from {raw[:, 0].mean():.3g} to {raw[:, -1].mean():.3g}{seeds}"


def _metrics(name: str, panels: Mapping[str, Any]) -> str:
    """Return the choice of the metric."""
    options = "".join(f"<option>{escape(run_curves.TITLES.get(metric, metric))}</option>" for metric in panels)
    return f"""<div class="choice"><label for="{name}.metric">Metric</label>
<select id="{name}.metric" autocomplete="off">{options}</select></div>"""


def _smoothing(name: str) -> str:
    """Return the slider of the smoothing."""
    control = SMOOTHING
    return f"""<div class="control">
<label for="{name}.smooth">{escape(control.label)}, {escape(control.symbol)}</label>
<span class="value" aria-hidden="true">{control.default:g}</span>
<input type="range" id="{name}.smooth" min="{control.low:g}" max="{control.high:g}" step="{control.step:g}"
value="{control.default:g}" autocomplete="off">
</div>"""


def _of_metric(tag: str, number: int, html: str) -> str:
    """Return an element that is shown while the metric of this number is chosen; the first is."""
    return f'<{tag} data-metric="{number}"{" hidden" * (number > 0)}>{html}</{tag}>'


def _table(logs: Sequence[Log], metrics: Sequence[str]) -> str:
    """Return the final values of each run."""
    frame = runs_parts.ends(logs, metrics)
    head = "".join(f'<th scope="col">{escape(str(column))}</th>' for column in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(f'{v:.4g}' if isinstance(v, float) else str(v))}</td>" for v in row) + "</tr>"
        for row in frame.itertuples(index=False)
    )
    table = f"<table><tr>{head}</tr>{rows}</table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="Final values">{table}</div>'
