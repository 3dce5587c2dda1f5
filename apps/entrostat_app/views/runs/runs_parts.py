"""The page Runs beyond its curves: the runs side by side, against the law, and token by token.

Each section has its controls, `…_settings`, which are drawn at the side, and `draw_…`, which takes what they say.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from entrostat.doubts import doubts
from entrostat.runlog import target_of
from toybandit.trajectory import last_third

from ...shared import charts, exports
from ...shared.controls import Control
from ...shared.plain_text import plain
from . import run_curves, run_folder, run_law, run_log, tokens_html
from .run_log import Log

MOST = 8
"""Samples of one step that are shown."""
USUAL = ("entropy", "reward")
"""Metrics that are shown before one is chosen."""
SHARE = Control(
    key="runs.share",
    label="Forecast from the first",
    unit="share of the run",
    default=0.15,
    low=0.05,
    high=0.9,
    step=0.05,
    help="The law is fitted to this beginning of the run and tried on the rest.",
)
SCALE = Control(
    key="runs.colour",
    label="Shade tokens by",
    default="entropy",
    options=tuple(tokens_html.SCALES),
    help="Entropy of the policy at the token; weight that the controllers gave its advantage; ΔH, its own part in the "
    "change of entropy of its update.",
)


# What sections share ------------------------------------------------------------------------------------------------


def metrics_control(logs: Sequence[Log]) -> Control:
    """The choice of metrics, in groups by the part of their names before the slash."""
    options = run_curves.options(logs) or list(USUAL)
    usual = [name for name in options if name in USUAL] or options[:1]
    return Control(
        key="runs.metrics",
        label="Metrics",
        default=tuple(usual),
        options=tuple(options),
        help="What the runs have logged; docs/metrics.md says what each is. Those of one group share the part before "
        "the slash: type it to see them.",
    )


def commands(root: Path, logs: Sequence[Log]) -> list[str]:
    """What made the runs."""
    return [line for log in logs if (line := run_folder.command(root, log.name)) is not None]


def held(log: Log, metric: str) -> float:
    """Mean over seeds and the last third of the steps; NaN when it was not logged."""
    series = log.metrics.get(metric)
    return float("nan") if series is None else float(last_third(series.values).mean())


# Compare ----------------------------------------------------------------------------------------------------------


def compare_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"metrics": metrics_control(logs).draw()}


def draw_compare(root: Path, logs: Sequence[Log], metrics: Sequence[str]) -> None:
    """Last values, and the configuration where it differs."""
    st.header("How they ended")
    st.caption("Each metric: its last value, and its mean over the last third of the run. Click a heading to sort.")
    table = ends(logs, metrics)
    numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in table.columns[3:]}
    st.dataframe(table, hide_index=True, column_config=numbers, key="runs.ends")
    st.header("How they differ")
    differing = run_folder.differences({log.name: log.config for log in logs})
    if differing:
        frame = pd.DataFrame(differing).T.rename_axis("setting").reset_index()
        st.dataframe(frame, hide_index=True, key="runs.differences")
    else:
        st.caption("Nothing to set apart: one run, or runs with the same configuration.")


def ends(logs: Sequence[Log], metrics: Sequence[str]) -> pd.DataFrame:
    """A row a run: name, state, last step; of each metric the last value and the mean over the last third."""
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
    """The choice of one of the runs."""
    return Control(
        key="runs.one",
        label="Run",
        default=first,
        options=tuple(log.name for log in logs),
        help="One of the runs above.",
    ).draw()


def law_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"name": one_run(logs, logs[0].name), "share": SHARE.draw()}


@st.cache_data(max_entries=64, show_spinner=False)
def fitted(entropy: np.ndarray, reward: np.ndarray, share: float) -> run_law.Fit:
    return run_law.fit(entropy, reward, share)


def draw_law(root: Path, logs: Sequence[Log], name: str, share: float) -> None:
    """R = −a·e^H + b on one run."""
    log = next((log for log in logs if log.name == name), logs[0])
    st.latex(r"R = -a\,e^{H} + b")
    found = fitted(*run_law.points(log), share)
    picture = run_law.picture(found)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        charts.show(picture, key="runs.law")
    with right:
        for warning in doubts(found.law, found.scores, found.entropy, target=target_of(log.config)):
            st.warning(warning, icon=":material/warning:")
        st.info(plain(run_law.summary(found)), icon=":material/visibility:")
        if found.prediction is None:
            st.caption("The beginning of the run has too few points, or too little movement, for a forecast.")
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("Estimates, with intervals of 95% that know that neighbouring steps err alike.")
        st.dataframe(run_law.coefficients(found), hide_index=True, key="runs.coefficients")
    with right:
        st.caption("The law beside other curves: the best has the greatest adjusted R² and the least AIC.")
        formats = {"R²": "%.3f", "adjusted R²": "%.3f", "AIC": "%.1f"}
        numbers = {name: st.column_config.NumberColumn(format=text) for name, text in formats.items()}
        st.dataframe(run_law.contest(found), hide_index=True, column_config=numbers, key="runs.contest")
    exports.draw(picture, "law", commands(root, [log]))


# Responses --------------------------------------------------------------------------------------------------------


def response_settings(logs: Sequence[Log]) -> dict[str, Any]:
    return {"name": one_run(logs, logs[0].name), "scale": SCALE.draw()}


def draw_responses(root: Path, logs: Sequence[Log], name: str, scale: str) -> None:
    """The responses of one step, token by token."""
    log = next((log for log in logs if log.name == name), logs[0])
    steps = list(run_log.sample_steps(root, log.name))
    if not steps:
        st.info("This run has no sample responses. The trainer writes them; the simulator has tokens without a text.")
        return
    step = steps[-1]
    if len(steps) > 1:
        if st.session_state.get("runs.step", step) > steps[-1]:
            st.session_state["runs.step"] = steps[-1]
        step = Control(
            key="runs.step", label="Step", default=steps[-1], low=steps[0], high=steps[-1], help="Of the run."
        ).draw()
    for sample in run_log.samples(root, log.name, step)[:MOST]:
        draw_sample(sample, scale)


def draw_sample(sample: Mapping[str, Any], scale: str) -> None:
    """Prompt, legend, tokens and a table of their numbers. All text is escaped."""
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
        st.caption(f"This log does not tell {scale} for each token: the text alone.")
    else:
        st.html(tokens_html.legend(sample, scale))
    st.html(tokens_html.response(sample, scale))
    words = tokens_html.notice(sample, scale)
    if words:
        st.info(plain(words), icon=":material/visibility:")
    advantage = tokens_html.column(sample, "advantage")
    if advantage is not None and not any(advantage):
        st.caption("No token has an advantage: all responses to this prompt earned the same.")
    table = token_table(sample)
    if table is not None:
        if len(table) > tokens_html.MOST:
            st.caption(f"The first {tokens_html.MOST:,} tokens are drawn; the table has all.")
        with st.expander("The numbers of each token"):
            st.dataframe(table, key=f"runs.tokens.{sample.get('step')}")


def token_table(sample: Mapping[str, Any]) -> pd.DataFrame | None:
    """A row a token; None when the log does not tell tokens."""
    tokens = sample.get("tokens")
    if not isinstance(tokens, list):
        return None
    columns = {
        label: numbers
        for key, label in tokens_html.HOVER.items()
        if (numbers := tokens_html.column(sample, key)) is not None
    }
    return pd.DataFrame({"token": [tokens_html.visible(str(token)) for token in tokens], **columns})
