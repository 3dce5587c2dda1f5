"""Controls with label, symbol, unit and help, bound to query parameters, so that the URL holds the page's state."""

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from .plain_text import plain

LONGEST = 60
"""Upper limit for the characters of a link's values in a message."""
DRAWN = "drawn controls"
"""Session key: for every control drawn so far, the page that drew it last and its default there."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """Number, choice or switch, depending on `default`.

    With `options`: a choice, of several values if the default is a tuple, or a slider over them if they are `ordered`.
    With `low` and `high`: a slider. Otherwise: a switch or a number, or a text field if the number is None or infinite.
    """

    key: str
    """Query parameter, and key in the session state."""
    label: str
    default: Any
    help: str
    symbol: str = ""
    """Symbol as in the papers, such as η."""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    options: tuple[str, ...] = ()
    ordered: bool = False
    empty: str | None = None
    """Placeholder of an empty choice, which explains its meaning."""

    @property
    def title(self) -> str:
        """Title above the control: label, symbol and unit."""
        unit = f" ({self.unit})" if self.unit else ""
        return " ".join(part for part in (self.label, self.symbol) if part) + unit

    def draw(self) -> Any:
        """Draw the control here, and below it the values of a link that it does not have; return its value."""
        self.remember()
        refused = self._refused()
        value = self._draw()
        if refused:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            said = f"{self.title}: the link has {refused[:LONGEST]}, which is unknown here; this is {shown}"
            st.info(plain(said), icon=":material/link_off:")
        return value

    def _refused(self) -> str:
        """Return the values in the URL that this choice or slider does not have; empty if there are none."""
        values = st.query_params.get_all(self.key)
        if self.options:
            return ", ".join(value for value in values if value not in self.options)
        if self.low is None or self.high is None:
            return ""
        return ", ".join(value for value in values if not self.low <= _float(value) <= self.high)

    def _draw(self) -> Any:
        """Draw the widget; return its value."""
        common: dict[str, Any] = {"key": self.key, "help": self.help, "bind": "query-params"}
        if isinstance(self.default, bool):
            return st.toggle(self.title, value=self.default, **common)
        if self.options and isinstance(self.default, tuple):
            chosen = list(self.default)
            return st.multiselect(self.title, self.options, default=chosen, placeholder=self.empty, **common)
        if self.ordered:
            return st.select_slider(self.title, self.options, self.default, **common)
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
        """Record this control's default in the session, for `restore` and `in_state`.

        Streamlit carries the value of a key over to the next page. If the value is the default of the old page, it is
        replaced by the default of the new page.
        """
        drawn, page, default = st.session_state.setdefault(DRAWN, {}), _page(), self._held(self.default)
        last, before = drawn.get(self.key, (page, default))
        if last != page and st.session_state.get(self.key) == before:
            st.session_state[self.key] = default
        drawn[self.key] = page, default

    def _held(self, value: Any) -> Any:
        """Return a value as the session holds it."""
        if value is None:
            return ""
        if isinstance(value, tuple):
            return list(value)
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    def _infinite_in_url(self) -> bool:
        """Return True if the URL holds an infinite number, which Streamlit fails to convert to an integer.

        Removes it and reruns the page. After the browser's Back a widget owns the parameter, and it stays in the URL.
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
        """Return the content of a text field: a number if it is one, None if the field is empty, otherwise the text."""
        if not text.strip():
            return None
        try:
            return float(text)
        except ValueError:
            return text.strip()


@dataclass(frozen=True, kw_only=True)
class Sections(Control):
    """Choice between the sections of a page, as a row of buttons."""

    def _draw(self) -> str:
        """Draw the buttons; return the name of the chosen section."""
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


@dataclass(frozen=True, kw_only=True)
class Named(Control):
    """Choice whose options are shown in words, while links keep their names: Streamlit would write the words."""

    words: Mapping[str, str] = field(default_factory=dict)
    """Words of the options that are not shown by their names; the same words are shown with the name."""

    def _draw(self) -> Any:
        """Draw the menu, after taking over what the URL has since the last run; return the name, or the names."""
        several, seen = isinstance(self.default, tuple), f"{self.key} in the URL"
        given = st.query_params.get_all(self.key)
        if (_page(), given) != st.session_state.get(seen, (_page(), [])):  # a link, or the browser's Back
            known = [name for name in given if name in self.options]
            if given or st.session_state[seen][0] == _page():
                st.session_state[self.key] = known if several else (known or [self.default])[0]
        common: dict[str, Any] = {"key": self.key, "help": self.help, "placeholder": self.empty}
        words = [self.words.get(name, name) for name in self.options]
        shown = {
            name: word if words.count(word) == 1 else f"{word} ({name})"
            for name, word in zip(self.options, words, strict=True)
        }
        common["format_func"] = lambda name: shown.get(name, name)
        value: Any
        if several:
            value = st.multiselect(self.title, self.options, default=list(self.default), **common)
        else:
            value = st.selectbox(self.title, self.options, index=self.options.index(self.default), **common)
        names = [] if value == self._held(self.default) else value if several else [value]
        if names and names != given:
            st.query_params[self.key] = names
        elif given and not names:
            del st.query_params[self.key]
        st.session_state[seen] = _page(), names
        return value


def _float(text: str) -> float:
    """Return the number that a text is, or NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def coarseness(value: float) -> float:
    """Return the step of a number field: 1 for integers, .1 for 0, otherwise a tenth of the number's power of ten."""
    if isinstance(value, int):
        return 1
    return 0.1 if value == 0 else 10.0 ** (math.floor(math.log10(abs(value))) - 1)


def restore(values: Mapping[str, Any] | None = None) -> None:
    """Set the page's controls to `values`, the others to their defaults. For callbacks, which run before drawing."""
    for key, value in {**_defaults(), **(values or {})}.items():
        st.session_state[key] = _plain(value)


def in_state(values: Mapping[str, Any], except_for: Collection[str] = ()) -> bool:
    """Return True if the page's controls hold `values` and all other controls hold their defaults."""
    shown = {key: default for key, default in _defaults().items() if key in st.session_state and key not in except_for}
    held = {key: _plain(values.get(key, default)) for key, default in shown.items()}
    return set(values) <= set(held) and all(_plain(st.session_state[key]) == value for key, value in held.items())


def _page() -> str:
    """Return Streamlit's hash of the running page; empty if no page runs."""
    context = get_script_run_ctx()
    return context.page_script_hash if context else ""


def _defaults() -> dict[str, Any]:
    """Return the defaults of the page's controls, by key."""
    drawn, here = st.session_state.get(DRAWN, {}), _page()
    return {key: default for key, (page, default) in drawn.items() if page == here}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def query(values: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return values of controls as query parameters, as Streamlit writes them."""
    return {key: [str(item) for item in v] if isinstance(v, tuple | list) else _text(v) for key, v in values.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
