"""Every claim is on trial; its verdict there is the one that is known, and turns where it should."""

from dataclasses import replace

import numpy as np
import pytest

from toybandit.claims import CLAIMS, FAILS, HOLDS, Live
from toybandit.claims.live_case import Condition
from toybandit.trials import TRIALS

CASES = {name: claim.live for name, claim in CLAIMS.items()}


def test_every_claim_has_a_trial_and_a_statement():
    assert all(claim.live and claim.latex for claim in CLAIMS.values())
    assert {case.trial.name for case in CASES.values()} == set(TRIALS)
    with pytest.raises(ValueError, match="claim 'mine': there is no trial 'wind'"):
        Live("wind", turned={}, claim="mine").run()


LONG = (
    "trap-escape",
    "trap-late",
    "trap-price",
    "trap-grpo",
    "siren-collapse",
    "siren-anchor",
    "lp-reg-entropy",
    "clip-higher",
    "off-policy-rising",
    "data-diversity",
)
"""Claims whose trials take half a second or more."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in CASES])
def test_verdict_is_the_known_one_and_turns(name):
    """Where it is shown first, and where its verdict turns; either outcome can be drawn."""
    case, expected = CASES[name], CLAIMS[name].expected
    known = expected != FAILS
    start, turned = case.run(), case.run(**case.turned)
    assert start.holds is known, start.verdict
    assert turned.holds is not known, turned.verdict
    assert case.broken(case.start) == []
    broken = case.broken({**case.start, **case.turned})
    if known:  # what turns it is what was assumed, or what the paper should have said
        assert {condition.stated for condition in broken} == {expected == HOLDS}
    for found in (start, turned):
        can_be_drawn(found)


def can_be_drawn(found):
    n = len(found.x)
    assert n == len(found.predicted) == len(found.measured) == len(found.residual) > 1
    assert all(array.dtype == np.float64 for array in (found.x, found.predicted, found.measured))
    assert np.isfinite(found.x).all()
    assert found.x_title
    assert found.y_title
    assert found.because.endswith(".")
    assert not found.names or len(found.names) == n
    if found.log_x:
        assert (found.x > 0).all()
    if not found.points:
        assert (np.diff(found.x) > 0).all()


@pytest.mark.parametrize("name", ["thm1-centred", "windup", "law-fit"])
def test_the_same_values_give_the_same_numbers(name):
    np.testing.assert_array_equal(CASES[name].run().measured, CASES[name].run().measured)


@pytest.mark.parametrize("name", TRIALS)
def test_parameters_are_complete(name):
    found = TRIALS[name]
    assert found.meaning
    assert len(found.defaults) == len(found.parameters)
    for parameter in found.parameters:
        assert parameter.checked(parameter.default) == parameter.default
        assert parameter.help.endswith(".")
        number = not parameter.options and not isinstance(parameter.default, bool)
        assert number == (parameter.low is not None) == (parameter.high is not None) == (parameter.step is not None)


@pytest.mark.parametrize(
    ("condition", "text", "met", "broken"),
    [
        (Condition(key="kp", low=1), "Kp ≥ 1", 1.0, 0.5),
        (Condition(key="kp", high=1), "Kp ≤ 1", 0.5, 2.0),
        (Condition(key="kp", low=1, high=1), "Kp = 1", 1.0, 1.5),
        (Condition(key="kp", low=1, high=2), "1 ≤ Kp ≤ 2", 2.0, 2.5),
        (Condition(key="anti_windup", allowed=(True,)), "Anti-windup: on", True, False),
    ],
)
def test_conditions(condition, text, met, broken):
    assert CASES["windup"].told(condition) == text
    assert condition.met(met)
    assert not condition.met(broken)


@pytest.mark.slow
def test_notes_say_what_is_assumed_of_a_parameter():
    case = CASES["thm1-centred"]
    assert case.note("shift") == "Assumed: E[A] = 0."
    assert case.note("std") == ""
    (broken,) = case.broken({**case.start, "shift": 0.5})
    assert broken.key == "shift"


@pytest.mark.parametrize(
    ("live", "message"),
    [
        (Live("nonsense", turned={}), "there is no trial 'nonsense'"),
        (Live("clipping", turned={"nosuch": 1}), "trial 'clipping' has no nosuch"),
        (Live("clipping", turned={"passes": 100}), "passes must be between"),
        (Live("clipping", turned={}, conditions=(Condition(key="alsonot"),)), "trial 'clipping' has no alsonot"),
    ],
)
def test_what_is_not_there_is_named(live, message):
    with pytest.raises(ValueError, match=message) as found:
        replace(live, claim="mine").check()
    assert str(found.value).startswith("live case of the claim 'mine': ")


def test_live_cases_of_all_claims_are_right():
    for case in CASES.values():
        case.check()
