"""Tokens of one update of a run, under their own plan and under other controllers."""

from collections.abc import Sequence
from functools import cache

import pandas as pd
import streamlit as st

from entrostat.about.lineup import Entry, entries
from toybandit import Config
from toybandit.leaderboard.cells import TARGET
from toybandit.rollout_tokens import RolloutTokens, Update, by_quadrant, described, planned_by, watch

from ...shared.simulations import identity

MEASURES = {
    "mean weight": "weight",
    "kept share": "kept",
    "entropy change": "change",
}
"""Measures of a quadrant, and the fields that hold them."""
MILLI = 1000.0


@cache
def choices() -> dict[str, Entry]:
    """Return the controllers of the leaderboard, by name."""
    return {entry.name: entry for entry in entries()}


@st.cache_resource(max_entries=32, show_spinner=False, hash_funcs={Config: identity})
def update_of(config: Config, seed: int, rollout: int, number: int) -> Update:
    """Return one update of a run. Sessions share it: do not write to it. Raises ValueError as `watch` does."""
    return watch(config, seed, rollout=rollout, number=number)


def tokens_of(update: Update) -> RolloutTokens:
    """Return the tokens of an update under the plan that was made for them."""
    return described(update.tokens, update.plan)


def tokens_under(name: str, update: Update, target: float | None) -> RolloutTokens:
    """Return the same tokens under one of `choices`; target: nats, for controllers that have one.

    Raises ValueError in one line if the controller cannot plan for these tokens.
    """
    entry = choices()[name]
    wanted = TARGET if target is None else target
    held = wanted if entry.has_target else None
    config = Config(controller=entry.controller, controller_args=entry.args, target=held)
    return described(update.tokens, planned_by(config, update))


def compared(named: Sequence[tuple[str, RolloutTokens]], measure: str, *, exact: bool) -> pd.DataFrame:
    """Return a row for each controller and quadrant: columns controller, quadrant, tokens, value.

    measure: one of MEASURES. Entropy changes are in thousandths of a nat.
    """
    factor = MILLI if measure == "entropy change" else 1.0
    rows = [
        {
            "controller": name,
            "quadrant": quadrant,
            "tokens": found.tokens,
            "value": factor * getattr(found, MEASURES[measure]),
        }
        for name, tokens in named
        for quadrant, found in by_quadrant(tokens, exact=exact).items()
    ]
    return pd.DataFrame(rows)


def wide(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the frame of `compared` with a column for each quadrant, and their sum if it is an entropy change."""
    table = frame.pivot(index="controller", columns="quadrant", values="value").loc[frame["controller"].unique()]
    if measure == "entropy change":
        table["sum"] = table.sum(axis=1)
    return table.reset_index().rename_axis(columns=None)
