"""Theorems: each claim as an experiment, with sliders that break its assumptions."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from toybandit.claims import CLAIMS, Live, Record
from toybandit.claims.registry import QUICK
from toybandit.trials import Outcome

from ...shared import charts, exports, presets
from ...shared.controls import Control
from ...shared.plain_text import plain
from ...shared.trial_words import badges, difference, meaning, met, told
from . import trial_pictures

ALL = "all papers"
FIRST = "thm1-centred"
"""Claim that is shown if the URL names none."""


def page() -> None:
    """Draw one claim: statement, assumptions, live experiment and the check of `toybandit verify`; then all claims."""
    st.title("Theorems")
    st.caption(
        "Each claim of the papers as a small experiment. Move a slider until an assumption breaks: does the claim "
        "still hold?"
    )
    presets.draw_links("theorems")
    for problem in plug_ins():
        st.warning(plain(problem))
    with st.sidebar:
        name = choose()
        case = CLAIMS[name].live
        values = draw_parameters(case) if case else {}
    st.header(name, anchor=False)
    draw_claim(name)
    if case:
        draw_trial(case, values)
    st.header("Check by `toybandit verify`", anchor=False)
    draw_measurement(name)
    st.header("All claims", anchor=False)
    draw_table()


@st.cache_resource
def plug_ins() -> list[str]:
    """Import the claims of installed plug-ins; return a line for each that cannot be."""
    return CLAIMS.with_plug_ins()


def choose() -> str:
    """Draw the choice of paper and claim; return the claim's name."""
    papers = (ALL, *dict.fromkeys(claim.paper for claim in CLAIMS.values()))
    paper = Control(
        key="paper", label="Paper", default=ALL, options=papers, help="Paper whose claims can be chosen below."
    ).draw()
    names = tuple(name for name, claim in CLAIMS.items() if paper in (ALL, claim.paper))
    if st.session_state.get("claim") not in (None, *names):
        del st.session_state["claim"]
    default = FIRST if FIRST in names else names[0]
    return Control(key="claim", label="Claim", default=default, options=names, help="Name in the report.").draw()


def controls(case: Live) -> dict[str, Control]:
    """Return the controls of a claim's trial by parameter key; they start at the values that the claim assumes."""
    found = {}
    for parameter in case.trial.parameters:
        given = {**vars(parameter), "key": f"{case.claim}.{parameter.key}", "default": case.start[parameter.key]}
        note = case.note(parameter.key)
        found[parameter.key] = Control(**{**given, "help": plain(f"{parameter.help} {note}".strip())})
    return found


def draw_parameters(case: Live) -> dict[str, Any]:
    """Draw the sliders of a trial and buttons that set them; return their values by parameter key."""
    st.divider()
    with st.container(horizontal=True):
        turned = {**case.start, **case.turned}
        st.button(
            "Flip the verdict", icon=":material/flip:", on_click=put, args=(case, turned), help=plain(turning(case))
        )
        st.button("As claimed", icon=":material/restart_alt:", on_click=put, args=(case, case.start))
    return {key: control.draw() for key, control in controls(case).items()}


def put(case: Live, values: Mapping[str, Any]) -> None:
    """Set the sliders of a trial. For callbacks."""
    for key, control in controls(case).items():
        st.session_state[control.key] = values[key]


def turning(case: Live) -> str:
    """Return the changes that the button makes, in words."""
    titles = {parameter.key: parameter.symbol or f"“{parameter.label}”" for parameter in case.trial.parameters}
    return "Sets " + ", ".join(f"{titles[key]} to {told(value)}" for key, value in case.turned.items()) + "."


def draw_claim(name: str) -> None:
    """Draw paper, statement, the paper's words, assumption and our threshold."""
    claim = CLAIMS[name]
    st.caption(plain(f"{claim.paper}, {claim.source}"))
    if claim.latex:
        st.markdown(rf"$\displaystyle {claim.latex}$", text_alignment="center")  # keys cannot scroll st.latex
    texts = {"Says": claim.words, "Assumes": claim.assumption, "Our threshold": claim.threshold}
    st.markdown("  \n".join(f"**{title}** {plain(text)}." for title, text in texts.items() if text))


@st.cache_resource(max_entries=512, show_spinner="Measuring")
def run(_case: Live, name: str, values: tuple[tuple[str, Any], ...]) -> Outcome:
    """Return a claim's trial at these values. Sessions share it: do not write to it. Raises ValueError in one line."""
    return _case.run(**dict(values))


def draw_trial(case: Live, values: Mapping[str, Any]) -> None:
    """Draw the live experiment: picture, verdict and badges of the assumptions."""
    try:
        outcome = run(case, case.claim, tuple(values.items()))
    except ValueError as error:
        st.error(plain(str(error)))
        return
    picture = trial_pictures.picture(outcome)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        charts.show(picture, key="trial")
        st.caption(difference(outcome))
    with right:
        draw_verdict(case, values, outcome)
    exports.draw(picture, f"theorems-{case.claim}", [])


def draw_verdict(case: Live, values: Mapping[str, Any], outcome: Outcome) -> None:
    """Draw badges of the assumptions, the verdict, and its meaning here."""
    with st.container(horizontal=True):
        if met(case, values):
            st.badge("Assumption met", icon=":material/check:", color="green")
        for text in badges(case, values):
            st.badge(plain(text), icon=":material/warning:", color="orange")
    show, icon = (st.success, ":material/check_circle:") if outcome.holds else (st.warning, ":material/cancel:")
    show(plain(outcome.verdict), icon=icon)
    st.markdown(plain(case.trial.meaning))
    st.info(plain(notice(case, values, outcome)), icon=":material/visibility:")


def notice(case: Live, values: Mapping[str, Any], outcome: Outcome) -> str:
    """Return the meaning of the verdict, and the button that turns it if no assumption explains it."""
    text = meaning(case, values, outcome)
    if not met(case, values) or (case.broken(values) and not outcome.holds):
        return text
    return f"{text} “Flip the verdict” {turning(case).lower()[:1]}{turning(case)[1:]}"


@st.cache_resource
def measured() -> dict[str, Record]:
    """Return the measurements since the server started, by claim name. Sessions share them."""
    return {}


def draw_measurement(name: str) -> None:
    """Draw the claim's check as in `toybandit verify --quick`, on demand."""
    claim = CLAIMS[name]
    record = measured().get(name)
    st.markdown(
        f"Known verdict: **{plain(claim.expected or 'none yet')}**. The check is larger than the experiment above."
    )
    label = "Measure again (quick)" if record else "Measure now (quick)"
    if st.button(label, icon=":material/science:", help="Takes a few seconds."):
        with st.spinner(f"Measuring {name}"):
            record = measured()[name] = claim(QUICK)
    if record is None:
        return
    doubt = f"{record.false_failure:.0e}" if record.false_failure else "0: the check draws no random numbers"
    lines = {
        "Threshold": record.threshold,
        **({"Null": f"{record.null}: {record.measured_null}"} if record.null else {}),
        "Measured": record.measured,
        "Verdict": record.verdict if record.as_expected else f"{record.verdict}; the known one is {record.expected}",
        "Probability of another verdict with fresh seeds": doubt,
    }
    st.markdown("\n".join(f"- **{title}**: {plain(text)}" for title, text in lines.items()))


def draw_table() -> None:
    """Draw a table of all claims; a click on a row chooses its claim."""
    st.caption("Choose a row to see its experiment.")
    st.dataframe(
        table(),
        hide_index=True,
        width="stretch",
        height=320,
        key="claims",
        on_select=follow,
        selection_mode="single-row",
    )


def table() -> pd.DataFrame:
    """Return a row for each claim, in the order of the report."""
    rows = [(name, claim.expected, claim.paper, claim.source, claim.assumption) for name, claim in CLAIMS.items()]
    return pd.DataFrame(rows, columns=["claim", "known verdict", "paper", "source", "assumes"])


def follow() -> None:
    """Go to the claim whose row was chosen. For callbacks."""
    rows = st.session_state["claims"]["selection"]["rows"]
    if rows:
        st.session_state["paper"] = ALL
        st.session_state["claim"] = list(CLAIMS)[rows[0]]
