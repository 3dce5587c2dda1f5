"""Theorems: pictures of all trials, and the page in AppTest."""

import time
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.shared import exports, trial_words
from entrostat_app.views.theorems import theorems, trial_pictures
from toybandit.claims import CLAIMS, FAILS, HOLDS, Finding
from toybandit.trials import TRIALS, Outcome

POINTS = {
    "x": np.array([1.0, 10.0]),
    "x_title": "x",
    "predicted": np.array([1.0, 2.0]),
    "measured": np.array([1.5, 2.0]),
    "y_title": "y (nats)",
    "holds": False,
    "because": "it is .5 off.",
}


def app(query: dict[str, str] | None = None) -> AppTest:
    def script() -> None:
        from entrostat_app.views.theorems import theorems

        theorems.page()

    found = AppTest.from_function(script, default_timeout=60)
    for key, value in (query or {}).items():
        found.query_params[key] = value
    return found.run()


def texts(found: AppTest) -> str:
    """Return all texts of the page, without escapes."""
    kinds = ("markdown", "caption", "success", "warning", "error", "info", "header")
    return "\n".join(str(each.value) for kind in kinds for each in found.get(kind)).replace("\\", "")


def sentence(found: AppTest) -> str:
    """Return the sentence of the claim that is shown, without escapes."""
    return found.header[0].value.replace("\\", "").replace("\u2060", "")


def verdict(found: AppTest) -> str:
    (shown,) = [*found.success, *found.warning]
    return shown.value.replace("\\", "")


def press(found: AppTest, label: str) -> AppTest:
    (button,) = [button for button in found.button if button.label == label]
    return button.click().run()


@pytest.mark.parametrize(
    "shape",
    [{}, {"points": True}, {"log_x": True}, {"log_x": True, "log_y": True}, {"x": np.arange(2.0), "names": ("a", "b")}],
)
def test_every_kind_of_picture_can_be_exported_and_described(shape):
    outcome = Outcome(**{**POINTS, **shape})
    picture = trial_pictures.picture(outcome)
    values = picture.frame.set_index(["series", "x"])["value"]
    assert values[trial_pictures.MEASURED].tolist() == [1.5, 2.0]
    assert values[trial_pictures.PREDICTED].tolist() == [1.0, 2.0]
    residual = values[trial_pictures.RESIDUAL].tolist()
    assert residual == ([0.5] if shape.get("log_y") else [0.5, 0.0])  # a logarithmic axis has no 0
    text = exports.svg(picture).decode()
    assert text.startswith("<svg")
    assert "y (nats)" in text
    assert all(name in text for name in shape.get("names", ()))
    assert trial_words.difference(outcome) == "Measured and predicted differ by 0.5 at most."


def test_a_long_curve_is_a_line_and_nothing_to_compare_is_said():
    many = {name: np.linspace(1, 2, 40) for name in ("x", "predicted")}
    outcome = Outcome(**{**POINTS, **many, "measured": np.full(40, np.nan)})
    marks = [layer["mark"]["type"] for layer in trial_pictures.picture(outcome).spec["vconcat"][0]["layer"]]
    assert "line" in marks
    assert trial_words.difference(outcome) == "Nothing can be compared."


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.long] * (i % 3 > 0)) for i, x in enumerate(CLAIMS)]
)
def test_every_claim_is_shown_as_claimed(name):
    found = app({"claim": name})
    assert not found.exception
    assert sentence(found).rstrip(".") in theorems.sentences()[name]
    fails = CLAIMS[name].expected == FAILS
    assert verdict(found).startswith("Fails here" if fails else "Holds here")
    said = texts(found)
    assert "Assumption met" in said
    assert "broken" not in said
    assert theorems.plain(CLAIMS[name].assumption).replace("\\", "") in said
    assert len(found.get("arrow_vega_lite_chart") + found.get("vega_lite_chart")) == 1


def test_moving_a_slider_breaks_the_assumption_and_the_claim():
    found = app()
    assert sentence(found) == theorems.sentences()["thm1-centred"]
    found.slider(key="thm1-centred.shift").set_value(0.4).run()
    assert "to the power 1.00" in verdict(found)
    assert "Assumption broken: E[A] = 0" in texts(found)
    assert "The claim needs this assumption" in texts(found)


def test_a_link_gives_the_same_verdict_as_the_slider():
    moved = app()
    moved.slider(key="thm1-centred.shift").set_value(0.4).run()
    assert verdict(app({"thm1-centred.shift": "0.4"})) == verdict(moved)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("clip-thresholds", "The claim needs this assumption"),
        ("windup", "Unstated condition broken: Anti-windup: on"),
        ("opefo-sign", "All assumptions are met, and the claim holds"),
    ],
)
def test_the_verdict_turns_and_turns_back(name, said):
    found = app({"claim": name})
    first = verdict(found)
    turned = press(found, "Flip the verdict")
    assert verdict(turned)[:5] != first[:5]
    assert said in texts(turned)
    for key, value in CLAIMS[name].live.turned.items():
        assert turned.session_state[f"{name}.{key}"] == value
    assert verdict(press(turned, "As claimed")) == first


def test_every_meaning_of_a_verdict():
    case = CLAIMS["windup"].live
    outcome = case.run()
    fails = Outcome(**{**vars(outcome), "holds": False})
    start, off = case.start, {**case.start, "anti_windup": False}
    assert theorems.notice(case, start, outcome).startswith("All assumptions are met")
    assert theorems.notice(case, start, fails).startswith("A counterexample: all")
    assert "The claim also needs: Anti-windup: on" in theorems.notice(case, off, fails)
    stated = CLAIMS["thm1-centred"].live
    shifted = {**stated.start, "shift": 1.0}
    assert theorems.notice(stated, shifted, fails).startswith("The claim needs this assumption")
    assert theorems.notice(stated, shifted, outcome).startswith("An assumption is broken, and the claim still holds")


def test_a_paper_narrows_the_claims_down():
    found = app()
    found.selectbox(key="paper").set_value("OPEFO").run()
    assert not found.exception
    options = found.selectbox(key="claim").options
    words = theorems.sentences()
    assert options == [words[name] for name, claim in CLAIMS.items() if claim.paper == "OPEFO"]
    assert sentence(found) == options[0]


@pytest.mark.parametrize(
    "query", [{"claim": "nonsense"}, {"thm1-centred.shift": "99"}, {"paper": "?", "claim": "[x](y)"}]
)
def test_what_a_link_cannot_mean_is_left_at_its_default_and_said(query):
    found = app(query)
    assert not found.exception
    assert sum("which is unknown here" in one.value for one in found.info) == len(query)
    assert sentence(found) == theorems.sentences()["thm1-centred"]
    assert verdict(found).startswith("Holds here")


def test_what_cannot_be_fitted_is_one_line():
    found = app({"claim": "law-prediction", "law-prediction.window": "0.1", "law-prediction.rollouts": "20"})
    assert not found.exception
    assert found.error[0].value.replace("\\", "").startswith("share 0.1 of 20 points is 2")


def test_measuring_on_demand(monkeypatch):
    asked = []

    def check(effort: Any) -> Finding:
        asked.append(effort)
        return Finding("slope *2.00*", {"slope": 2.0}, HOLDS, 0.01)

    claim = CLAIMS["thm1-centred"]
    monkeypatch.setitem(CLAIMS, "thm1-centred", type(claim)(**{**vars(claim), "check": check}))
    theorems.measured().pop("thm1-centred", None)
    found = app()
    assert asked == []
    found = press(found, "Measure now (quick)")
    assert [effort.instances for effort in asked] == [theorems.QUICK.instances]
    said = texts(found)
    assert "Measured: slope *2.00*" in said.replace("**Measured**", "Measured")
    assert "1e-02" in said
    assert "Measure again (quick)" in [button.label for button in app().button]  # shared with other sessions
    assert len(asked) == 1
    theorems.measured().clear()


def test_the_table_leads_to_every_claim(monkeypatch):
    frame = theorems.table()
    assert frame["claim"].tolist() == list(theorems.sentences().values())
    assert set(frame["known verdict"]) == {claim.expected for claim in CLAIMS.values()}
    state: dict[str, Any] = {"claims": {"selection": {"rows": [3]}}, "paper": "OPEFO"}
    monkeypatch.setattr(theorems.st, "session_state", state)
    theorems.follow()
    assert (state["paper"], state["claim"]) == (theorems.ALL, list(CLAIMS)[3])
    state["claims"] = {"selection": {"rows": []}}
    theorems.follow()
    assert state["claim"] == list(CLAIMS)[3]


def test_a_move_redraws_quickly():
    found = app()
    times = []
    for shift in (0.1, 0.2, 0.3, 0.4):
        found.slider(key="thm1-centred.shift").set_value(shift)
        start = time.process_time()
        found.run()
        times.append(time.process_time() - start)
    assert min(times) < 0.5


MINE = """
from toybandit.claims import HOLDS, Finding, Live, claim, equals
from toybandit.trial import Outcome, Parameter, trial
import numpy as np


@trial("mine", Parameter(key="x", label="X", default=1.0, low=-1.0, high=1.0, step=0.5, help="A number."))
def mine(x):
    "A number and its sign."
    at = np.arange(2.0)
    return Outcome(x=at, x_title="x", predicted=at, measured=x * at, y_title="y", holds=x > 0, because="it is so.")


NEEDED = {"paper": "Mine", "source": "s", "words": "w", "assumption": "a", "threshold": "t", "null": "n"}


@claim("mine-live", **NEEDED, mutations=(), live=Live(mine, turned={"x": -1.0}))
def live(effort):
    "Meaning."
    return Finding("1", {"x": 1.0}, HOLDS)


@claim("mine-alone", **NEEDED, mutations=())
def alone(effort):
    "Meaning."
    return Finding("1", {"x": 1.0}, HOLDS)
"""


def test_claims_of_plug_ins_are_on_the_page(distribution):
    """One with a trial of its own, one without, and one that cannot be imported."""
    declared = "[toybandit.claims]\na = page_claims:live\nb = page_claims:alone\nc = page_claims:absent\n"
    distribution("mine", declared, page_claims=MINE)
    theorems.plug_ins.clear()
    try:
        found = app({"claim": "mine-live"})
        assert not found.exception
        assert "claim 'c' of the distribution mine cannot be imported" in texts(found)
        assert "Holds here: it is so." in texts(found)
        assert "Fails here: it is so." in texts(press(found, "Flip the verdict"))
        alone = app({"claim": "mine-alone"})
        assert not alone.exception
        assert not alone.success
        assert "Known verdict: **none yet**" in texts(alone)
        assert "Verdict**: holds" in texts(press(alone, "Measure now (quick)"))
    finally:
        theorems.plug_ins.clear()
        for name in ("mine-live", "mine-alone"):
            CLAIMS.pop(name, None)
        TRIALS.pop("mine", None)
