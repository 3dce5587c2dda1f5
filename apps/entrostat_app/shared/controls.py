"""A control: label, symbol, unit and help, bound to a query parameter, so that the URL holds the state of the page."""

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

DRAWN = "drawn controls"
"""Where the session keeps, of every control that it has shown, the page that showed it last and its default there."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """One number, choice or switch; `default` decides which.

    With `options` a choice, of several when the default is a tuple; with `low` and `high` a slider; else a switch or a
    number, and a text field for numbers that are None or infinite.
    """

    key: str
    """Its query parameter, and its key in the session's state."""
    label: str
    default: Any
    help: str
    symbol: str = ""
    """As in the papers, such as η."""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    options: tuple[str, ...] = ()
    empty: str | None = None
    """What a choice of none means, shown in its place."""

    @property
    def title(self) -> str:
        """What stands over the control: label, symbol and unit."""
        unit = f" ({self.unit})" if self.unit else ""
        return " ".join(part for part in (self.label, self.symbol) if part) + unit

    def draw(self) -> Any:
        """Show the control here; its value."""
        self.remember()
        common: dict[str, Any] = {"key": self.key, "help": self.help, "bind": "query-params"}
        if isinstance(self.default, bool):
            return st.toggle(self.title, value=self.default, **common)
        if self.options and isinstance(self.default, tuple):
            chosen = list(self.default)
            return st.multiselect(self.title, self.options, default=chosen, placeholder=self.empty, **common)
        if self.options:
            return st.selectbox(self.title, self.options, index=self.options.index(self.default), **common)
        if self.low is not None and self.high is not None:
            kind = type(self.default)
            step = kind(self.step if self.step is not None else 1)
            return st.slider(self.title, kind(self.low), kind(self.high), self.default, step, **common)
        if isinstance(self.default, int) or (isinstance(self.default, float) and math.isfinite(self.default)):
            step = self.step if self.step is not None else coarseness(self.default)
            number = type(self.default)
            text = "%d" if isinstance(self.default, int) else "%g"
            low = None if self.low is None else number(self.low)
            if isinstance(self.default, int) and self._infinite_in_url():
                del common["bind"]
            return st.number_input(
                self.title, min_value=low, value=self.default, step=number(step), format=text, **common
            )
        return self._number(st.text_input(self.title, value=self._held(self.default), **common))

    def remember(self) -> None:
        """Tell the session what this control holds by default, for `restore` and `in_state`.

        Streamlit takes what a key holds along to the next page: what it holds by default there is not taken along.
        """
        drawn, page, default = st.session_state.setdefault(DRAWN, {}), _page(), self._held(self.default)
        last, before = drawn.get(self.key, (page, default))
        if last != page and st.session_state.get(self.key) == before:
            st.session_state[self.key] = default
        drawn[self.key] = page, default

    def _held(self, value: Any) -> Any:
        """A value as the session holds it."""
        if value is None:
            return ""
        if isinstance(value, tuple):
            return list(value)
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    def _infinite_in_url(self) -> bool:
        """Whether the URL gives an infinite number, which Streamlit fails to make a whole number of.

        Runs the page again without it; after the browser's way back, when a widget has the parameter, it stays there.
        """
        try:
            infinite = math.isinf(float(st.query_params.get(self.key, 0)))
        except ValueError:
            return False
        if infinite:
            with suppress(StreamlitAPIException):
                del st.query_params[self.key]
                st.rerun()
        return infinite

    def _number(self, text: str) -> Any:
        """What stands in a text field: a number where it is one, None where there is nothing."""
        if not text.strip():
            return None
        try:
            return float(text)
        except ValueError:
            return text.strip()


@dataclass(frozen=True, kw_only=True)
class Sections(Control):
    """A choice between parts of a page, as a row of buttons."""

    def draw(self) -> str:
        """Show the buttons here; the name of the section."""
        self.remember()
        chosen = st.segmented_control(
            self.title,
            self.options,
            default=self.default,
            required=True,
            key=self.key,
            bind="query-params",
            label_visibility="collapsed",
        )
        return chosen or self.default


def coarseness(value: float) -> float:
    """A step for a number: 1 for whole numbers, else a tenth of its power of ten; .1 for 0."""
    if isinstance(value, int):
        return 1
    return 0.1 if value == 0 else 10.0 ** (math.floor(math.log10(abs(value))) - 1)


def restore(values: Mapping[str, Any] | None = None) -> None:
    """Set every control of the page to its default but those in `values`. For callbacks: none is shown yet then."""
    for key, value in {**_defaults(), **(values or {})}.items():
        st.session_state[key] = _plain(value)


def in_state(values: Mapping[str, Any], except_for: Collection[str] = ()) -> bool:
    """Whether every control on the page holds its default but those in `values`, which hold these."""
    shown = {key: default for key, default in _defaults().items() if key in st.session_state and key not in except_for}
    held = {key: _plain(values.get(key, default)) for key, default in shown.items()}
    return set(values) <= set(held) and all(_plain(st.session_state[key]) == value for key, value in held.items())


def _page() -> str:
    """The page that runs, whatever Streamlit calls it."""
    context = get_script_run_ctx()
    return context.page_script_hash if context else ""


def _defaults() -> dict[str, Any]:
    """What every control of the page holds by default, by key."""
    drawn, here = st.session_state.get(DRAWN, {}), _page()
    return {key: default for key, (page, default) in drawn.items() if page == here}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def query(values: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Values of controls as query parameters, as Streamlit writes them."""
    return {key: [str(item) for item in v] if isinstance(v, tuple | list) else _text(v) for key, v in values.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
