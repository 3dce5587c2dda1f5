"""Compare: up to eight controllers with the same random seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from toybandit.leaderboard.standings import LEVEL

from ...shared import bandit, charts, exports, presets, simulations
from ...shared.beside import beside
from ...shared.controls import Control
from ...shared.plain_text import plain
from ...shared.room import room
from . import comparison, tradeoff
from .comparison import Outcome
from .contenders import MOST, Contender, options, parse_all, pinned

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

OWN_DEFAULTS = {"states": 8, "rollouts": 40, "passes": 2}
"""Defaults that are smaller than the playground's, because this page simulates several bandits."""
ENVIRONMENT = tuple(
    replace(c, default=OWN_DEFAULTS.get(c.key, c.default)) for c in bandit.ENVIRONMENT if c.key != "advantage"
)
"""Controls of the bandit without `advantage`, which each line can set."""
TARGET = replace(bandit.TARGET, default=0.8)
SEEDS = Control(
    key="seeds",
    label="Seeds",
    default=4,
    low=1,
    high=16,
    help="Runs of each contender, for the bands. All contenders, pinned ones too, have the same random seeds, so their "
    "differences are not due to chance.",
)
FIRST_SEED = replace(bandit.SEED, label="First seed", help="The others follow: 3 with 4 seeds means 3, 4, 5 and 6.")


@dataclass(frozen=True, kw_only=True)
class Lineup(Control):
    """Choice among lines; the user can also type new ones."""

    def draw(self) -> Any:
        """Draw the control here; return the lines."""
        self.remember()
        return st.multiselect(
            self.title,
            self.options,
            default=list(self.default),
            key=self.key,
            help=self.help,
            bind="query-params",
            accept_new_options=True,
            max_selections=MOST,
            placeholder="Choose or type one",
        )


@dataclass(frozen=True, kw_only=True)
class Lines(Control):
    """Text field with several lines."""

    placeholder: str = ""

    def draw(self) -> list[str]:
        """Draw the control here; return its lines."""
        self.remember()
        text = st.text_area(
            self.title,
            self.default,
            key=self.key,
            help=self.help,
            bind="query-params",
            placeholder=self.placeholder,
            height=100,
        )
        return (text or "").splitlines()


DEFAULT = ("grpo", "clip_higher", "entropic tau=0.5 ki=0.05", "thermostat rate=0.05")
"""Two contenders without a target and two that hold one; the thermostat's rate suits a short run."""
CONTENDERS = Lineup(
    key="contenders",
    label="Contenders",
    default=DEFAULT,
    options=tuple(dict.fromkeys((*DEFAULT, *options()))),
    help="Choose some, or type a line: controllers joined by +, then settings, such as "
    "`clip_higher+entropic kp=1 tau=0`. A line can start with a name and a colon, and can also set numbers of the "
    "bandit: `other: grpo env=det lr=2`.",
)
PINS = Lines(
    key="pins",
    label="Pinned",
    default="",
    placeholder="Nothing is pinned",
    help="One line per contender, with all its settings: it does not change when controls move. To rename it, edit the "
    "name before the colon; to remove it, delete the line.",
)
VERDICT = 75
"""Height that is kept free for the verdict, pixels."""
PIN_CONTENDER, PIN_NAME, PIN_ERROR = "pin.contender", "pin.name", "pin.error"
"""Session keys of the pin form: contender, name and error message."""


def page() -> None:
    """Draw contenders and their bandit, entropy and reward over time and against each other, and a table."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Compare", width="content")
        presets.draw_links("compare")
    st.fragment(draw_contenders)()


def draw_contenders() -> None:
    """Draw the controls of contenders and bandit, and beside them the comparison."""
    panel, stage = beside()
    with panel:
        lines = [*CONTENDERS.draw(), *PINS.draw()]
        environment = bandit.draw_environment(ENVIRONMENT)
    with stage:
        draw_comparison(lines, environment)


def draw_comparison(lines: Sequence[str], environment: Mapping[str, Any]) -> None:
    """Draw target and seeds, and what the contenders of these lines do with them."""
    *columns, right = st.columns([3, 3, 2, 1], gap="medium", vertical_alignment="bottom")
    values = []
    for column, control in zip(columns, (TARGET, SEEDS, FIRST_SEED), strict=True):
        with column:
            values.append(control.draw())
    target, count, first = values
    contenders, errors = parse_all(lines, environment, target)
    for error in errors:
        st.error(plain(error))
    with right:
        draw_pin(contenders)
    if not contenders:
        st.info("Choose a contender.", icon=":material/arrow_back:")
        return
    verdict, stage = room("verdict", VERDICT), room("pictures", tradeoff.HEIGHT)
    with stage:
        outcomes = run(contenders, tuple(range(first, first + count)))
    if outcomes:
        draw(verdict, stage, outcomes, target)


def run(contenders: Sequence[Contender], seeds: tuple[int, ...]) -> list[Outcome]:
    """Return the outcomes of contenders that run in their bandit without diverging; draw an error for each other one.

    Empty if runs are slow and the user has not asked for them.
    """
    try:
        found = simulations.run_or_ask([c.config for c in contenders], seeds, [c.name for c in contenders])
    except ValueError as error:
        reasons = {contender.name: comparison.obstacle(contender) for contender in contenders}
        if not any(reasons.values()):
            st.error(plain(str(error)))
            return []
        for name, reason in reasons.items():
            if reason:
                st.error(plain(f"{name}: {reason}"))
        return run([contender for contender in contenders if not reasons[contender.name]], seeds)
    outcomes = []
    for contender, trajectory in zip(contenders, found, strict=True) if found else ():
        try:
            outcomes.append(comparison.outcome(contender, trajectory))
        except ValueError as error:
            st.error(plain(f"{contender.name}: {error}"))
    return outcomes


def draw(verdict: "DeltaGenerator", stage: "DeltaGenerator", outcomes: Sequence[Outcome], target: float) -> None:
    """Draw the verdict and the pictures at their places, and below them the table and the exports."""
    standings = comparison.ranked(outcomes)
    over_time = comparison.over_time(outcomes, target)
    paths = tradeoff.picture(outcomes, target if comparison.holders(outcomes, target) else None)
    left, right = stage.columns(2, gap="medium")
    with left:
        charts.show(over_time, key="over-time")
    with right:
        charts.show(paths, key="trade-off")
    words = comparison.notice(standings) or comparison.summary(outcomes), comparison.on_held_out(outcomes)
    verdict.info(plain(" ".join(filter(None, words))), icon=":material/visibility:")
    st.caption(
        "Left: means over seeds, and bands from the lowest to the highest. Right: each path leads to the mark at the "
        "last policy, with a dot at each quarter of the run; the cross at the mark is the range over seeds. "
        f"{comparison.on_paths(outcomes)}"
    )
    draw_table(comparison.table(standings), outcomes[0].trajectory.runs)
    commands = comparison.commands(outcomes)
    exports.draw(over_time, "compare", commands)
    exports.draw(paths, "reward-entropy", commands)


def draw_pin(contenders: Sequence[Contender]) -> None:
    """Draw the form that pins a contender under a name."""
    with st.popover("Pin", icon=":material/keep:", disabled=not contenders):
        st.fragment(_pin_form)({contender.name: contender for contender in contenders})


def _pin_form(contenders: Mapping[str, Contender]) -> None:
    chosen = st.selectbox("Contender", list(contenders), key=PIN_CONTENDER, help="It stays fixed while controls move.")
    free = free_name(chosen or "", contenders)
    st.text_input("Name", key=PIN_NAME, placeholder=free, help="Name of the pinned contender.")
    if st.button("Pin it", type="primary", disabled=chosen is None, on_click=pin, args=(contenders,)):
        if PIN_ERROR in st.session_state:
            st.error(plain(st.session_state.pop(PIN_ERROR)))
        else:
            st.rerun()


def pin(contenders: Mapping[str, Contender]) -> None:
    """Add the form's contender to the pinned lines. For callbacks; stores an error message under PIN_ERROR."""
    chosen: str = st.session_state[PIN_CONTENDER]
    name = st.session_state[PIN_NAME].strip() or free_name(chosen, contenders)
    try:
        if name in contenders:
            raise ValueError(f"{name} is the name of another contender: choose another name")
        line = pinned(contenders[chosen], name)
    except ValueError as error:
        st.session_state[PIN_ERROR] = str(error)
        return
    before = (st.session_state.get(PINS.key) or "").rstrip("\n")
    st.session_state[PINS.key] = f"{before}\n{line}" if before else line
    st.session_state[PIN_NAME] = ""


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name for a pin of this contender that is not taken: "NAME pinned", or with a number."""
    base = f"{name[:48]} pinned"
    return next(n for n in (base, *(f"{base} {k}" for k in range(2, MOST + 3))) if n not in taken)


def draw_table(frame: pd.DataFrame, seeds: int) -> None:
    """Draw the standings, which a click on a column sorts, and their downloads."""
    st.header("Standings")
    columns, text = shown(frame)
    st.dataframe(columns, column_config=text, hide_index=True, width="stretch", placeholder="–")
    st.caption(
        f"Means over {seeds} seeds, ± half their {LEVEL:.0%} bootstrap interval; for settling, the median and its "
        "interval. Click a column to sort by it."
    )
    with st.container(horizontal=True):
        for label, make, mime in (
            ("CSV", exports.csv, "text/csv"),
            ("Parquet", exports.parquet, "application/vnd.apache.parquet"),
        ):
            st.download_button(
                f"{label} of the table",
                partial(make, frame),
                f"standings.{label.lower()}",
                mime,
                on_click="ignore",
            )


def shown(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table as shown, with intervals as text and without empty columns, and its column configuration."""
    columns: dict[str, Any] = {"contender": frame["contender"]}
    text: dict[str, Any] = {"contender": st.column_config.TextColumn("contender", pinned=True)}
    for name, (title, meaning) in comparison.MEASURES.items():
        if frame[name].isna().all():
            continue
        numbers = zip(frame[name], frame[f"{name}_low"], frame[f"{name}_high"], strict=True)
        columns[name] = [settling(*ends) if name == "settling" else measured(*ends) for ends in numbers]
        text[name] = st.column_config.TextColumn(title, help=meaning, alignment="right")
    if frame["same_as"].any():
        columns["same_as"] = frame["same_as"]
        text["same_as"] = st.column_config.TextColumn("same numbers as")
    return pd.DataFrame(columns), text


def measured(value: float, low: float, high: float) -> str | None:
    """Return a number with half its interval as text, None for NaN."""
    if pd.isna(value):
        return None
    return f"{value:.3f}" if pd.isna(low) or low == high else f"{value:.3f} ± {(high - low) / 2:.3f}"


def settling(value: float, low: float, high: float) -> str | None:
    """Return rollouts with their interval as text that sorts like the number, None for NaN."""
    between = interval(low, high)
    return None if pd.isna(value) else padded(value) + (f" ({between})" if between != padded(value).strip() else "")


def padded(value: float) -> str:
    """Return an integer as text that sorts like the number, "never" for infinity."""
    return "never" if value == float("inf") else f"{value:.0f}".rjust(4)


def interval(low: float, high: float) -> str:
    """Return an interval of integers as text, "never" for infinity; one number if it has no width."""
    ends = ("never" if value == float("inf") else f"{value:.0f}" for value in (low, high))
    return "–".join(dict.fromkeys(ends))
