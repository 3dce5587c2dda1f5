"""Compare: up to eight controllers with the same random seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from toybandit.leaderboard.standings import LEVEL

from ...shared import bandit, charts, exports, presets, simulations
from ...shared.controls import Control
from ...shared.plain_text import plain
from . import comparison, tradeoff
from .comparison import Outcome
from .contenders import MOST, Contender, options, parse_all, pinned

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
PIN_CONTENDER, PIN_NAME, PIN_ERROR = "pin.contender", "pin.name", "pin.error"
"""Session keys of the pin form: contender, name and error message."""


def page() -> None:
    """Draw contenders in the sidebar, entropy and reward over time and against each other, and a table."""
    st.title("Compare")
    st.caption(
        "Several controllers train on the same bandits with the same random seeds. Lines are means over seeds, bands "
        "range from the lowest to the highest seed."
    )
    with st.sidebar:
        lines = CONTENDERS.draw()
        pins = PINS.draw()
        target = TARGET.draw()
        count, first = SEEDS.draw(), FIRST_SEED.draw()
        environment = bandit.draw_environment(ENVIRONMENT)
    contenders, errors = parse_all([*lines, *pins], environment, target)
    for error in errors:
        st.error(plain(error))
    with st.container(horizontal=True):
        draw_pin(contenders)
        presets.draw_links("compare")
    if not contenders:
        st.info("Choose a contender in the sidebar.", icon=":material/arrow_back:")
        return
    outcomes = run(contenders, tuple(range(first, first + count)))
    if outcomes:
        draw(outcomes, target)


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


def draw(outcomes: Sequence[Outcome], target: float) -> None:
    """Draw the pictures, the note and the table."""
    standings = comparison.ranked(outcomes)
    commands = comparison.commands(outcomes)
    left, right = st.columns(2, gap="medium")
    with left:
        st.header("Over time")
        over_time = comparison.over_time(outcomes, target)
        charts.show(over_time, key="over-time")
        exports.draw(over_time, "compare", commands)
    with right:
        st.header("Reward against entropy")
        held = target if comparison.holders(outcomes, target) else None
        paths = tradeoff.picture(outcomes, held)
        charts.show(paths, key="trade-off")
        st.caption(
            "Each path leads from a contender's first policy to the mark at its last, with a dot at each quarter of "
            f"the run; the cross at the mark is the range over seeds. {comparison.on_paths(outcomes)}"
        )
        exports.draw(paths, "reward-entropy", commands)
    words = comparison.notice(standings) or comparison.summary(outcomes), comparison.on_held_out(outcomes)
    st.info(plain(" ".join(filter(None, words))), icon=":material/visibility:")
    draw_table(comparison.table(standings), outcomes[0].trajectory.runs)


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
        f"Means over {seeds} seeds; for settling, the median. Next to each: its {LEVEL:.0%} bootstrap interval over "
        "seeds. Click a column to sort by it."
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
    """Return the table as shown and its column configuration: an interval in one column, empty columns left out."""
    columns: dict[str, Any] = {"contender": frame["contender"]}
    width = min(max(90, 20 + 7 * int(frame["contender"].str.len().max())), 220)
    text: dict[str, Any] = {"contender": st.column_config.TextColumn("contender", pinned=True, width=width)}
    for name, (title, meaning) in comparison.MEASURES.items():
        if frame[name].isna().all():
            continue
        digits = 3
        if name == "settling":
            digits = 0
            columns[name] = [padded(value) for value in frame[name]]
            text[name] = st.column_config.TextColumn(title, help=meaning, alignment="right")
        else:
            columns[name] = frame[name]
            text[name] = st.column_config.NumberColumn(title, format=f"%.{digits}f", help=meaning)
        pairs = zip(frame[f"{name}_low"], frame[f"{name}_high"], strict=True)
        columns[f"{name}_interval"] = [interval(low, high, digits) for low, high in pairs]
        text[f"{name}_interval"] = st.column_config.TextColumn(
            f"{LEVEL:.0%}", help=f"Interval of the {title} over seeds.", width=92
        )
    if frame["same_as"].any():
        columns["same_as"] = frame["same_as"]
        text["same_as"] = st.column_config.TextColumn("same numbers as")
    return pd.DataFrame(columns), text


def padded(value: float) -> str | None:
    """Return an integer as text that sorts like the number, "never" for infinity, None for NaN."""
    if pd.isna(value):
        return None
    return "never" if value == float("inf") else f"{value:.0f}".rjust(4)


def interval(low: float, high: float, digits: int) -> str:
    """Return an interval as text, "never" for infinity; one number if it has no width, empty if it is NaN."""
    if pd.isna(low):
        return ""
    ends = ("never" if value == float("inf") else f"{value:.{digits}f}" for value in (low, high))
    return "–".join(dict.fromkeys(ends))
