"""Theorems: each claim as an experiment, with sliders that break its assumptions."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from toybandit.claims import CLAIMS, Live, Record
from toybandit.claims.registry import QUICK
from toybandit.trials import Outcome

from ...shared import charts, exports, presets
from ...shared.controls import Control, Named
from ...shared.plain_text import plain
from ...shared.room import room
from ...shared.trial_words import badges, difference, meaning, met, sentence, told
from . import trial_pictures

ALL = "all papers"
FIRST = "thm1-centred"
"""Claim that is shown if the URL names none."""
VERDICT, PICTURE = 150, 400
"""Heights that are kept free for the verdict and the picture, pixels."""


def page() -> None:
    """Draw one claim: sentence, verdict, live experiment and the check of `toybandit verify`; then all claims."""
    st.title("Theorems")
    for problem in plug_ins():
        st.warning(plain(problem))
    name = choose()
    claim = CLAIMS[name]
    st.header(plain(sentence(claim.words)), anchor=False)
    if claim.live:
        st.fragment(draw_trial)(claim.live)
    st.header("The claim in its paper", anchor=False)
    draw_claim(name)
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
    left, middle, right = st.columns([2, 6, 2], gap="small", vertical_alignment="bottom")
    with left:
        paper = Control(key="paper", label="Paper", default=ALL, options=papers, help="Paper of the claims.").draw()
    names = tuple(name for name, claim in CLAIMS.items() if paper in (ALL, claim.paper))
    if st.session_state.get("claim") not in (None, *names):
        del st.session_state["claim"]
    default = FIRST if FIRST in names else names[0]
    with middle:
        control = Named(
            key="claim",
            label="Claim",
            default=default,
            options=names,
            words=sentences(),
            help="Move a slider until an assumption breaks: does the claim still hold?",
        )
        name: str = control.draw()
    with right:
        presets.draw_links("theorems")
    return name


def sentences() -> dict[str, str]:
    """Return the sentence of each claim, by name; claims with the same words have their assumption, too."""
    found = [claim.words for claim in CLAIMS.values()]
    return {
        name: sentence(claim.words if found.count(claim.words) == 1 else f"{claim.words} ({claim.assumption})")
        for name, claim in CLAIMS.items()
    }


def controls(case: Live) -> dict[str, Control]:
    """Return the controls of a claim's trial by parameter key; they start at the values that the claim assumes."""
    found = {}
    for parameter in case.trial.parameters:
        given = {**vars(parameter), "key": f"{case.claim}.{parameter.key}", "default": case.start[parameter.key]}
        note = case.note(parameter.key)
        found[parameter.key] = Control(**{**given, "help": plain(f"{parameter.help} {note}".strip())})
    return found


def draw_parameters(case: Live) -> dict[str, Any]:
    """Draw the controls that turn the verdict, and the others folded; return their values by parameter key."""
    found = controls(case)
    values = {key: found[key].draw() for key in case.turned}
    with st.container(horizontal=True):
        turned = {**case.start, **case.turned}
        st.button(
            "Flip the verdict", icon=":material/flip:", on_click=put, args=(case, turned), help=plain(turning(case))
        )
        st.button("As claimed", icon=":material/restart_alt:", on_click=put, args=(case, case.start))
    others = {key: control for key, control in found.items() if key not in values}
    if others:
        linked = any(control.key in st.query_params for control in others.values())
        with st.expander("Other settings", expanded=linked):
            values |= {key: control.draw() for key, control in others.items()}
    return {key: values[key] for key in found}


def put(case: Live, values: Mapping[str, Any]) -> None:
    """Set the sliders of a trial. For callbacks."""
    for key, control in controls(case).items():
        st.session_state[control.key] = values[key]


def turning(case: Live) -> str:
    """Return the changes that the button makes, in words."""
    titles = {parameter.key: parameter.symbol or f"“{parameter.label}”" for parameter in case.trial.parameters}
    return "Sets " + ", ".join(f"{titles[key]} to {told(value)}" for key, value in case.turned.items()) + "."


def draw_claim(name: str) -> None:
    """Draw source, statement, assumption and our threshold."""
    claim = CLAIMS[name]
    st.caption(plain(f"{claim.paper}, {claim.source}"))
    if claim.latex:
        st.markdown(rf"$\displaystyle {claim.latex}$", text_alignment="center")  # keys cannot scroll st.latex
    texts = {"Assumes": claim.assumption, "Our threshold": claim.threshold}
    st.markdown("  \n".join(f"**{title}** {plain(text)}." for title, text in texts.items() if text))


@st.cache_resource(max_entries=512, show_spinner="Measuring")
def run(_case: Live, name: str, values: tuple[tuple[str, Any], ...]) -> Outcome:
    """Return a claim's trial at these values. Sessions share it: do not write to it. Raises ValueError in one line."""
    return _case.run(**dict(values))


def draw_trial(case: Live) -> None:
    """Draw the live experiment: verdict and controls on the left, the picture on the right."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        verdict = room("verdict", VERDICT)
        values = draw_parameters(case)
    with right, room("trial", PICTURE):
        try:
            outcome = run(case, case.claim, tuple(values.items()))
        except ValueError as error:
            st.error(plain(str(error)))
            return
        drawn = trial_pictures.picture(outcome)
        charts.show(drawn, key="trial-picture")
        st.caption(f"{plain(case.trial.meaning)} {difference(outcome)}")
    with verdict:
        draw_verdict(case, values, outcome)
    exports.draw(drawn, f"theorems-{case.claim}", [])


def draw_verdict(case: Live, values: Mapping[str, Any], outcome: Outcome) -> None:
    """Draw badges of the assumptions, the verdict, and its meaning here."""
    with st.container(horizontal=True):
        if met(case, values):
            st.badge("Assumption met", icon=":material/check:", color="green")
        for text in badges(case, values):
            text = plain(text).replace("\\[", "[").replace("\\]", "]")  # st.badge escapes brackets itself
            st.badge(text, icon=":material/warning:", color="orange")
    show, icon = (st.success, ":material/check_circle:") if outcome.holds else (st.warning, ":material/cancel:")
    show(plain(outcome.verdict), icon=icon)
    st.caption(plain(notice(case, values, outcome)))


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
        row_height=56,
        column_config={"claim": st.column_config.TextColumn(width=700)},
        key="claims",
        on_select=follow,
        selection_mode="single-row",
    )


def table() -> pd.DataFrame:
    """Return a row for each claim, in the order of the report."""
    words = sentences()
    rows = [(words[name], claim.expected, claim.paper) for name, claim in CLAIMS.items()]
    return pd.DataFrame(rows, columns=["claim", "known verdict", "paper"])


def follow() -> None:
    """Go to the claim whose row was chosen. For callbacks."""
    rows = st.session_state["claims"]["selection"]["rows"]
    if rows:
        st.session_state["paper"] = ALL
        st.session_state["claim"] = list(CLAIMS)[rows[0]]
