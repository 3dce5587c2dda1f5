"""Runs: logs as curves, with a diagnosis, side by side, against the law, and token by token."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from entrostat.logs.runlog import target_of

from ...shared import charts, exports, run_folder
from ...shared.controls import Control, Named, Sections
from ...shared.plain_text import plain
from ...shared.room import room
from . import foreign_logs, run_curves, run_diagnosis, run_log, winners
from . import runs_parts as parts
from .run_log import Log
from .run_names import shortened
from .run_verdicts import Verdict, verdict

REFRESH = 2.0
"""Seconds between two reads of the files of a run in progress."""
MOST = 8
"""Upper limit for runs, and for panels, shown at once: the number of colours."""
FIRST = 4
"""Number of runs shown before the user chooses some."""
HEIGHTS = {1: 320, 2: 200, 3: 150}
"""Height of a panel in pixels, by the number of panels."""
AROUND = 68
"""Height of a panel's title and of its share of the time axis, pixels."""
SECTIONS = ("Curves", "Diagnosis", "Compare", "Law", "Responses")
HOW_TO = """toybandit run --env noisy --controller entropic --target 0.6 --out runs/first
llmtrain train --preset countdown-cpu --controller adaptive_entropy --target 0.45 \\
    --set delta=0.005 --set coef_max=0.1"""
LIVE = Control(
    key="runs.live",
    label="Live",
    default=False,
    help=f"Update the logs of runs in progress every {REFRESH:g} seconds.",
)
AXIS = Control(
    key="runs.x",
    label="Time axis",
    default="step",
    options=tuple(run_curves.AXES),
    help="Rollout steps, or tokens or seconds of training. The simulator logs steps only.",
)
SMOOTHING = Control(
    key="runs.smooth",
    label="Smoothing",
    symbol="β",
    default=0.6,
    low=0.0,
    high=0.98,
    step=0.02,
    help="Weight of the past in the moving average. Faint lines behind it show the logged numbers; 0 shows only these.",
)
BANDS = Control(
    key="runs.bands",
    label="Join seeds",
    default=True,
    help="Runs that differ by seed only become one line, their mean, with a band from the lowest to the highest.",
)


def page() -> None:
    """Draw the choice of runs in the sidebar, and one of the sections about them."""
    heading = st.container(horizontal=True, vertical_alignment="center")
    heading.title("Runs", width="content")
    root = run_folder.folder()
    try:
        found = run_folder.names(root)
    except ValueError as error:
        st.error(plain(str(error)))
        return
    with heading:
        new = foreign_logs.drop()
    dropped = foreign_logs.dropped()
    if not found and not dropped:
        explain(root)
        return
    known = run_folder.recent(root, found)
    if len(known) < len(found):
        left_out = len(found) - len(known)
        st.caption(f"The newest {len(known)} of {len(found)} runs can be chosen. Left out: {left_out}.")
    asked = [name for name in st.query_params.get_all("runs") if name not in known and name not in dropped]
    for name in asked[:MOST]:
        again = f"{name!r} was dropped in another session: drop the file again"
        problem = again if name.endswith(foreign_logs.MARK) else run_folder.problem(root, name, found)
        st.error(plain(problem))
    with heading:
        section = Sections(key="runs.show", label="Section", default=SECTIONS[0], options=SECTIONS, help="").draw()
    if known and "runs" not in st.query_params and "runs" not in st.session_state:  # set here, so that links name them
        st.session_state["runs"] = run_folder.newest(root, known, FIRST)
    if new:
        st.session_state["runs"] = [*new, *st.session_state.get("runs", st.query_params.get_all("runs"))][:MOST]
    with st.sidebar:
        names = (*dropped, *known)
        chosen = Named(
            key="runs",
            label="Runs",
            default=(),
            options=names,
            words=shortened(names),
            help="Folders with a config.yaml and a metrics.jsonl, and logs of other trainers.",
        ).draw()
        live = LIVE.draw()
        logs = load(root, chosen)
        settings = SETTINGS[section](logs) if logs else {}
    if len(chosen) > MOST:
        st.warning(f"Only the first {MOST} of {len(chosen)} runs are shown: there are no colours for more.")
    if not logs:
        load(root, chosen, tell=True)
        st.info("Choose a run in the sidebar.")
        return
    st.fragment(draw, run_every=REFRESH if live else None)(root, chosen, section, settings)


def draw(root: Path, chosen: Sequence[str], section: str, settings: dict[str, Any]) -> None:
    """Draw one section from the current files."""
    logs = load(root, chosen, tell=True)
    running = [f"{log.name} (step {log.last_step})" for log in logs if log.state == "running"]
    if running:
        st.caption(plain(f"Running: {', '.join(running)}."))
    try:
        DRAW[section](root, logs, **settings)
    except ValueError as error:
        st.error(plain(str(error)))
    except OSError as error:
        st.error(plain(unreadable(error)))
    foreign_logs.draw_names(logs)


def unreadable(error: OSError) -> str:
    """Return the name of the file that cannot be read and the reason, without its path."""
    return f"{Path(str(error.filename or 'a file')).name} cannot be read: {error.strerror}"


def load(root: Path, chosen: Sequence[str], tell: bool = False) -> list[Log]:
    """Return the chosen runs that can be read; tell: show why the others cannot, and the notes of all runs."""
    found, notes = [], []
    for name in list(chosen)[:MOST]:
        try:
            log = foreign_logs.dropped().get(name) or read(root, name)
        except (ValueError, OSError) as error:
            notes.append(f"{name}: {unreadable(error)}" if isinstance(error, OSError) else str(error))
            continue
        notes += log.notes
        found.append(log)
    for note in notes if tell else ():
        st.warning(plain(note))
    return found


def read(root: Path, name: str) -> Log:
    """Return a run log, or the log of another trainer."""
    return foreign_logs.read(root, name) if run_folder.is_foreign(root, name) else run_log.read(root, name)


def explain(root: Path) -> None:
    """Draw instructions for making a run, if there is none."""
    st.info("There is no run to show yet. Either of these commands makes one; then reload this page.")
    st.code(HOW_TO, language="shell", wrap_lines=True)
    st.caption("Runs are read from this folder; `entrostat-app --runs FOLDER` chooses another:")
    st.code(str(root), language=None, wrap_lines=True)


# Curves -----------------------------------------------------------------------------------------------------------


def curve_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {
        "metrics": parts.metrics_control(logs).draw(),
        "axis": AXIS.draw(),
        "smoothing": SMOOTHING.draw(),
        "bands": BANDS.draw(),
    }


def draw_curves(
    root: Path, logs: Sequence[Log], metrics: Sequence[str], axis: str, smoothing: float, bands: bool
) -> None:
    """Draw the verdict on each experiment, and a panel for each metric with a line for each of them."""
    groups = run_curves.experiments(logs) if bands else {log.name: [log] for log in logs}
    short = shortened(list(groups))
    groups = {short[name]: found for name, found in groups.items()}
    panels = {metric: run_curves.curves(groups, metric, axis, smoothing) for metric in metrics[:MOST]}
    panels = {metric: lines for metric, lines in panels.items() if lines}
    if not metrics:
        st.info("Choose a metric in the sidebar.")
        return
    if not panels:
        known = "" if axis == "step" else f" against {run_curves.AXES[axis]}: choose the time axis step"
        st.info(f"None of these runs has logged these metrics{known}.")
        return
    verdicts = {name: verdict(root, name, found) for name, found in groups.items()}
    draw_verdicts(verdicts)
    targets = sorted({t for log in logs if (t := target_of(log.config)) is not None})
    moving = run_curves.moving_targets(groups, axis) if "entropy" in panels else []
    drawn = {key: [*lines, *moving] if key == "entropy" else lines for key, lines in panels.items()}
    marks = {name: found.marks for name, found in verdicts.items() if found.marks and axis == "step"}
    picture = run_curves.picture(drawn, axis, targets, HEIGHTS.get(len(panels), charts.HEIGHT), marks)
    left, right = st.columns([3, 2], gap="medium")
    with left, room("curves", len(panels) * (HEIGHTS.get(len(panels), charts.HEIGHT) + AROUND)):
        charts.show(picture, key="runs.curves")
        if short.keys() != set(short.values()):
            st.caption(plain("; ".join(f"{text}: {name}" for name, text in short.items() if text != name)))
    with right:
        st.info(plain(notice(panels, groups, axis)), icon=":material/visibility:")
        absent = [name for name in groups if not all(any(c.name == name for c in lines) for lines in panels.values())]
        if absent:
            st.caption(plain(f"Missing in some panels, because they have not logged the metric: {', '.join(absent)}."))
        for sentence in run_curves.shortened(groups, list(panels)):
            st.caption(plain(sentence))
        if any(len(line.x) > run_curves.POINTS for lines in panels.values() for line in lines):
            st.caption(f"Long lines are thinned to {run_curves.POINTS} points, in the files below as well.")
    exports.draw(picture, "runs", parts.commands(root, logs))


def draw_verdicts(verdicts: Mapping[str, Verdict]) -> None:
    """Draw the sentence of each verdict, with the names of the experiments that it is about if there are several."""
    about: dict[str, list[str]] = {}
    for name, found in sorted(verdicts.items(), key=lambda item: not item[1].marks):
        about.setdefault(found.sentence, []).append(name)
    if len(verdicts) == 1:
        st.header(plain(next(iter(about))), anchor=False)
        return
    st.markdown("\n".join(f"- **{plain(', '.join(names))}**: {plain(told)}" for told, names in about.items()))


def basis(panels: Sequence[Sequence[run_curves.Curve]], axis: str) -> str:
    """Return what the comparison of the lines rests on, with the place if one of them ends before the others."""
    told = "Compared are unsmoothed means over the last third, and last evaluations, with 95% intervals over seeds; "
    told += "of a single run they cover its questions or its fluctuation, not other seeds."
    short = [lines for lines in panels if len({float(line.x[-1]) for line in lines}) > 1]
    if short:
        first = min((line for line in short[0]), key=lambda line: float(line.x[-1]))
        told += f" All lines are compared at {run_curves.AXES[axis]} {first.x[-1]:,.0f}, where {first.name} ends."
    return told


def notice(panels: Mapping[str, Sequence[run_curves.Curve]], groups: Mapping[str, Sequence[Log]], axis: str) -> str:
    """Return notes on the curves, made from their unsmoothed numbers; a paragraph each."""
    logs = {name if len(logs) == 1 else log.name: log for name, logs in groups.items() for log in logs}
    found = []
    for metric, lines in panels.items():
        name = metric if "/" in metric else metric.capitalize().replace("_", " ")
        if len(lines) > 1:
            found.append(winners.sentence(name, winners.ends(groups, lines, metric)))
        else:
            raw = lines[0].raw
            found.append(f"{name} goes from {raw[:, 0].mean():.3g} to {raw[:, -1].mean():.3g}.")
    several = [lines for lines in panels.values() if len(lines) > 1]
    if several:
        found.append(basis(several, axis))
    for name, log in logs.items() if "entropy" in panels else ():
        held = target_of(log.config)
        if held is not None and "entropy" in log.metrics:
            late = parts.held(log, "entropy")
            found.append(
                f"{name} has a target of {held:g} nats: over its last third, the mean is {late:.3g}, "
                f"{late - held:+.2g} from the target."
            )
    if any(len(line.raw) > 1 for lines in panels.values() for line in lines):
        found.append("Bands range from the lowest seed to the highest.")
    if any(line.low is not None for lines in panels.values() for line in lines):
        found.append("Bands of evaluations are their 95% intervals over questions.")
    if any(line.raw is not line.smooth for lines in panels.values() for line in lines):
        found.append("Faint lines are the logged numbers.")
    return "\n\n".join(found)


SETTINGS: dict[str, Callable[[Sequence[Log]], dict[str, Any]]] = {
    "Curves": curve_settings,
    "Diagnosis": run_diagnosis.settings,
    "Compare": parts.compare_settings,
    "Law": parts.law_settings,
    "Responses": parts.response_settings,
}
DRAW: dict[str, Callable[..., None]] = {
    "Curves": draw_curves,
    "Diagnosis": run_diagnosis.draw,
    "Compare": parts.draw_compare,
    "Law": parts.draw_law,
    "Responses": parts.draw_responses,
}
