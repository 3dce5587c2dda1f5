"""Sections of the page Runs except curves: runs side by side, against the law, and token by token.

Each section has `…_settings`, which draws its controls in the sidebar, and `draw_…`, which takes their values.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from entrostat.logs.doubts import doubts
from entrostat.logs.runlog import target_of
from toybandit.trajectory import last_third

from ...shared import charts, exports, run_folder, tokens_html
from ...shared.controls import Control, Named
from ...shared.plain_text import plain
from . import run_curves, run_law, run_log
from .run_log import Log
from .run_names import shortened

MOST = 8
"""Upper limit for samples of one step that are shown."""
USUAL = re.compile(r"entropy|reward|eval/pass@\d+")
"""Metrics shown before the user chooses some; of pass@k, that of the largest k."""
SHARE = Control(
    key="runs.share",
    label="Forecast from the first",
    unit="share of the run",
    default=0.15,
    low=0.05,
    high=0.9,
    step=0.05,
    help="The law is fitted to this first share of the run and tested on the rest.",
)
SCALE = Control(
    key="runs.colour",
    label="Shade tokens by",
    default="entropy",
    options=tuple(tokens_html.SCALES),
    help="entropy: entropy of the policy at the token. weight: factor of the controllers on its advantage. advantage: "
    "that in the plan. ΔH: its part in the entropy change of its update.",
)


# Shared by sections -------------------------------------------------------------------------------------------------


def metrics_control(logs: Sequence[Log]) -> Control:
    """Return the control for metrics, which groups them by the part of their names before the slash."""
    options = run_curves.options(logs) or ["entropy", "reward"]
    usual = [name for name in options if USUAL.fullmatch(name)] or options[:1]
    passed = sorted((name for name in usual if "@" in name), key=lambda name: int(name.partition("@")[2]))
    usual = [name for name in usual if name not in passed[:-1]]
    return Control(
        key="runs.metrics",
        label="Metrics",
        default=tuple(usual),
        options=tuple(options),
        help="Metrics that the runs have logged; docs/metrics.md explains them. Metrics of one group share the part "
        "before the slash: type it to list them.",
    )


def commands(root: Path, logs: Sequence[Log]) -> list[str]:
    """Return the commands that made the runs."""
    own = [log.name for log in logs if log.foreign is None]
    return [line for name in own if (line := run_folder.command(root, name)) is not None]


def held(log: Log, metric: str) -> float:
    """Return the mean over seeds and the last third of the steps; NaN if the metric was not logged."""
    series = log.metrics.get(metric)
    return float("nan") if series is None else float(last_third(series.values).mean())


# Compare ----------------------------------------------------------------------------------------------------------


def compare_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"metrics": metrics_control(logs).draw()}


def draw_compare(root: Path, logs: Sequence[Log], metrics: Sequence[str]) -> None:
    """Draw last values, and configuration keys that differ."""
    st.header("Final values")
    st.caption("Each metric: its last value, and its mean over the last third of the run. Click a heading to sort.")
    short = shortened([log.name for log in logs])
    table = ends(logs, metrics).replace({"run": short})
    numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in table.columns[3:]}
    st.dataframe(table, hide_index=True, column_config=numbers, key="runs.ends")
    st.header("Differences in configuration")
    differing = run_folder.differences({short[log.name]: log.config for log in logs})
    if differing:
        frame = pd.DataFrame(differing).T.rename_axis("setting").reset_index()
        st.dataframe(frame, hide_index=True, key="runs.differences")
    else:
        st.caption("None: there is only one run, or all runs have the same configuration.")


def ends(logs: Sequence[Log], metrics: Sequence[str]) -> pd.DataFrame:
    """Return a row per run: name, state, last step; for each metric the last value and the mean over the last third."""
    rows = []
    for log in logs:
        row: dict[str, Any] = {"run": log.name, "state": log.state, "step": log.last_step}
        for metric in metrics:
            series = log.metrics.get(metric)
            row[metric] = np.nan if series is None else series.values[:, -1].mean()
            row[f"{metric}, last third"] = held(log, metric)
        rows.append(row)
    return pd.DataFrame(rows)


# The law ----------------------------------------------------------------------------------------------------------


def one_run(logs: Sequence[Log], first: str) -> str:
    """Draw the choice of one run; return its name."""
    names = tuple(log.name for log in logs)
    return Named(
        key="runs.one", label="Run", default=first, options=names, words=shortened(names), help="One of the runs above."
    ).draw()


def law_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"name": one_run(logs, logs[0].name), "share": SHARE.draw()}


@st.cache_data(max_entries=64, show_spinner=False)
def fitted(entropy: np.ndarray, reward: np.ndarray, share: float) -> run_law.Fit:
    return run_law.fit(entropy, reward, share)


def draw_law(root: Path, logs: Sequence[Log], name: str, share: float) -> None:
    """Draw the law R = −a·e^H + b of one run."""
    log = next((log for log in logs if log.name == name), logs[0])
    st.latex(r"R = -a\,e^{H} + b")
    found = fitted(*run_law.points(log), share)
    picture = run_law.picture(found)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        charts.show(picture, key="runs.law")
    with right:
        target = target_of(log.config)
        for warning in doubts(found.law, found.scores, found.entropy, prediction=found.prediction, target=target):
            st.warning(warning, icon=":material/warning:")
        st.info(plain(run_law.summary(found)), icon=":material/visibility:")
        if found.prediction is None:
            st.caption("The first share of the run has too few points, or too little entropy change, for a forecast.")
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("Estimates with 95% intervals that account for correlated errors of neighbouring steps.")
        st.dataframe(run_law.coefficients(found), hide_index=True, key="runs.coefficients")
    with right:
        st.caption("The law and other curves: the best has the highest adjusted R² and the lowest AIC.")
        formats = {"R²": "%.3f", "adjusted R²": "%.3f", "AIC": "%.1f"}
        numbers = {name: st.column_config.NumberColumn(format=text) for name, text in formats.items()}
        st.dataframe(run_law.contest(found), hide_index=True, column_config=numbers, key="runs.contest")
    exports.draw(picture, "law", commands(root, [log]))


# Responses --------------------------------------------------------------------------------------------------------


def response_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"name": one_run(logs, logs[0].name), "scale": SCALE.draw()}


def draw_responses(root: Path, logs: Sequence[Log], name: str, scale: str) -> None:
    """Draw the responses of one step, token by token."""
    log = next((log for log in logs if log.name == name), logs[0])
    steps = list(run_log.sample_steps(root, log.name)) if log.foreign is None else []
    if not steps:
        st.info("This run has no sample responses. llmtrain writes them; the simulator's tokens have no text.")
        return
    step = steps[-1]
    if len(steps) > 1:
        if st.session_state.get("runs.step", step) > steps[-1]:
            st.session_state["runs.step"] = steps[-1]
        step = Control(
            key="runs.step", label="Step", default=steps[-1], low=steps[0], high=steps[-1], help="Rollout step."
        ).draw()
    for sample in run_log.samples(root, log.name, step)[:MOST]:
        draw_sample(sample, scale)


def draw_sample(sample: Mapping[str, Any], scale: str) -> None:
    """Draw prompt, legend, tokens and a table of their numbers. All text is escaped."""
    tokens = sample.get("tokens")
    count = f", {len(tokens):,} tokens" if isinstance(tokens, list) else ""
    reward = sample.get("reward")
    earned = f", reward {reward:g}" if isinstance(reward, int | float) else ""
    st.header(f"Step {sample.get('step')}{earned}{count}", anchor=False)
    if "prompt" in sample:
        st.caption("Prompt")
        st.html(tokens_html.region(tokens_html.escaped(sample["prompt"]), "Prompt"))
    st.caption("Response: hover over a token for its numbers")
    if tokens_html.column(sample, tokens_html.SCALES[scale].key) is None:
        st.caption(f"This log has no {scale} for each token: only the text is shown.")
    else:
        st.html(tokens_html.legend(sample, scale))
    st.html(tokens_html.response(sample, scale))
    words = tokens_html.notice(sample, scale)
    if words:
        st.info(plain(words), icon=":material/visibility:")
    advantage = tokens_html.column(sample, "advantage")
    if advantage is not None and not any(advantage):
        st.caption("No token has an advantage: all responses to this prompt earned the same reward.")
    table = token_table(sample)
    if table is not None:
        if len(table) > tokens_html.MOST:
            st.caption(f"The first {tokens_html.MOST:,} tokens are drawn; the table has all of them.")
        with st.expander("The numbers of each token"):
            st.dataframe(table, key=f"runs.tokens.{sample.get('step')}")


def token_table(sample: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return a row per token; None if the log has no tokens."""
    tokens = sample.get("tokens")
    if not isinstance(tokens, list):
        return None
    columns = {
        label: numbers
        for key, label in tokens_html.HOVER.items()
        if (numbers := tokens_html.column(sample, key)) is not None
    }
    return pd.DataFrame({"token": [tokens_html.visible(str(token)) for token in tokens], **columns})
