"""Every claim reaches its expected verdict, and verdicts follow from measurements."""

import pytest

from toybandit.claims import CLAIMS, Effort, Finding, claim, run_claims
from toybandit.claims.pictures import PICTURES, picture
from toybandit.claims.registry import FAILS, HOLDS, QUICK, holds_if, judge

SMALL = Effort(instances=12, runs=6, states=32, rollouts=100)


LONG = (
    "stare-target",
    "qae-quantile",
    "siren-anchor",
    "siren-collapse",
    "thermostat",
    "lp-reg-entropy",
    "four-quadrants",
    "bapo-entropy",
)
"""Claims that take seconds."""


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x in LONG)) for x in CLAIMS])
def test_verdict_is_the_expected_one(name):
    record = CLAIMS[name](SMALL)
    assert record.verdict == record.expected, record.measured
    assert record.as_expected
    assert record.numbers
    assert all(isinstance(value, float) for value in record.numbers.values())
    assert 0 <= record.false_failure < 0.5
    assert record.meaning.endswith(".")
    for text in (record.paper, record.source, record.assumption, record.predicted):
        assert text


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_of_a_claim(name, tmp_path):
    assert name in CLAIMS
    PICTURES[name].save(SMALL, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_quick_false_failure_rates_of_what_is_cheap():
    """All of them are in the report; these take a second."""
    for name in ("off-policy-updates", "clip-mechanism", "opefo-one-step"):
        assert CLAIMS[name](QUICK).false_failure <= 1e-4


def test_more_and_fewer_runs():
    assert SMALL.times(4).runs == 24
    assert SMALL.times(0.1).runs == 3


@pytest.mark.parametrize(
    ("as_stated", "under_condition", "verdict"),
    [(True, True, HOLDS), (True, False, HOLDS), (False, True, holds_if("x")), (False, False, FAILS)],
)
def test_judge(as_stated, under_condition, verdict):
    assert judge(as_stated, "x", under_condition) == verdict


def test_a_claim_without_condition_holds_or_fails():
    assert (judge(True), judge(False)) == (HOLDS, FAILS)


def test_names_are_unique():
    with pytest.raises(ValueError, match="claim 'lemma1-order' is registered twice"):
        claim("lemma1-order", paper="", source="", assumption="", predicted="", expected=HOLDS)(
            lambda effort: Finding("", {}, "")
        )
    with pytest.raises(ValueError, match="claim 'law-fit' has two pictures"):
        picture("law-fit", caption="")(lambda figure, effort: None)


def test_claims_are_measured_one_after_another():
    records = run_claims(SMALL)
    assert [next(records).name, next(records).name] == list(CLAIMS)[:2]
