"""Verdict on an experiment in a sentence, with the steps that it is about: the first line of a diagnosis."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from entrostat.logs.diagnosis import words
from entrostat.logs.diagnosis.facts import measure

from . import run_curves, run_diagnosis
from .run_log import Log, Series


class Verdict(NamedTuple):
    """Verdict on an experiment."""

    sentence: str
    marks: tuple[tuple[int, str], ...]
    """Steps of the events, and a word for each."""


def verdict(root: Path, name: str, logs: Sequence[Log]) -> Verdict:
    """Return the verdict on the mean of an experiment's runs.

    root, name: folder of the runs and name of the experiment, for the cache.
    """
    state = tuple((log.name, log.last_step, log.state) for log in logs)
    return _verdict(str(root), name, state, list(logs))


@st.cache_data(max_entries=256, show_spinner=False)
def _verdict(root: str, name: str, state: tuple[tuple[str, int, str], ...], _logs: list[Log]) -> Verdict:
    config = {} if _logs[0].foreign is not None else _logs[0].config
    found = measure(run_diagnosis.metrics(joined(name, _logs), {}), config, None)
    return Verdict(words.sections(found)[0].lines[0], tuple(found.happened.marks))


def joined(name: str, logs: Sequence[Log]) -> Log:
    """Return the runs of an experiment as one log: of each metric that all have logged, all seeds at common steps."""
    if len(logs) == 1:
        return logs[0]
    lines = {metric: run_curves.curve(name, logs, metric, "step", 0) for metric in run_curves.options(logs)}
    metrics = {metric: Series(line.x, line.raw) for metric, line in lines.items() if line is not None}
    return Log(name, logs[0].config, metrics, logs[0].state)
