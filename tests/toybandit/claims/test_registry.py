"""Every claim reaches its expected verdict, and verdicts follow from measurements."""

from dataclasses import replace

import pytest

from toybandit.claims import CLAIMS, Effort, Finding, claim, report, run_claims
from toybandit.claims.mutations import Mutation, Swap
from toybandit.claims.pictures import PICTURES, picture
from toybandit.claims.registry import FAILS, HOLDS, QUICK, holds_if, judge

SMALL = Effort(instances=12, runs=6, states=32, rollouts=100)


LONG = (
    "entropy-advantage",
    "thm4.3-pi-control",
    "pos-adv-reweight",
    "law-algorithms",
    "law-prediction",
    "stare-target",
    "qae-quantile",
    "siren-anchor",
    "siren-collapse",
    "thermostat",
    "lp-reg-entropy",
    "four-quadrants",
    "bapo-entropy",
    "law-fit",
    "clip-cov",
    "kl-cov",
    "clip-thresholds",
    "clip-random-rewards",
    "cor4.1-signs",
    "thm4.2-p-control",
    "tau-zero",
    "pi-stability-exact",
    "adaptive-clip",
    "four-quadrants-det",
    "steer-collapse",
    "clip-free",
    "thm4.2-fixed-point",
    "windup",
    "adaptive-entropy",
    "delayed-loops",
    "vespo-staleness",
    "repo-r-target",
    "adapo-target",
    "aer-target",
    "papo-polarity",
    "papo-target",
    "flexible-clip-bounds",
    "flexible-clip-strategies",
    "trap-grpo",
    "trap-escape",
    "trap-late",
    "trap-price",
    "clip-higher",
    "off-policy-rising",
    "positive-advantages",
    "data-diversity",
    "cor4.4-high-probability",
    "steer-remainder",
)
"""Claims that take a second or more."""


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_says_what_it_must_beat_and_what_turns_it(name):
    found = CLAIMS[name]
    assert all((found.words, found.threshold, found.null, found.mutations))
    names = [mutation.name for mutation in found.mutations]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mutation"),
    [
        pytest.param(x, m, id=f"{x}: {m.name}", marks=[pytest.mark.long] * (place > 0 or x in LONG))
        for x in CLAIMS
        for place, m in enumerate(CLAIMS[x].mutations)
    ],
)
def test_every_mutation_turns_its_verdict(name, mutation):
    assert CLAIMS[name].verdict_under(mutation, SMALL) != CLAIMS[name].expected


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x in LONG)) for x in CLAIMS])
def test_verdict_is_the_expected_one(name):
    record = CLAIMS[name](SMALL)
    assert record.verdict == record.expected, record.measured
    assert record.as_expected
    assert record.numbers
    assert all(isinstance(value, float) for value in record.numbers.values())
    assert 0 <= record.false_failure < 0.5
    assert record.meaning.endswith(".")
    for text in (record.paper, record.source, record.assumption, record.threshold):
        assert text
    assert record.measured_null


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_of_a_claim(name, tmp_path):
    assert name in CLAIMS
    PICTURES[name].save(SMALL, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


@pytest.mark.slow
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


EMPTY = dict.fromkeys(("paper", "source", "words", "assumption", "threshold", "null"), "") | {"expected": HOLDS}


WRONG = {
    "claim 'lemma1-order' is registered twice": lambda: claim("lemma1-order", **EMPTY, mutations=())(judge),
    "claim 'law-fit' has two pictures": lambda: picture("law-fit", caption="")(lambda figure, effort: None),
    "claim 'mine': expected must be 'holds', .* not 'hold'": lambda: claim(
        "mine", **EMPTY | {"expected": "hold"}, mutations=()
    )(judge),
    "unknown claim 'law-predicton'; did you mean law-prediction": lambda: CLAIMS.choose(("law-predicton",), ""),
    r"unknown claim '\?'; docs/theory\.md lists the names": lambda: CLAIMS.choose(("?",), ""),
    "no claim has 'nothing' in its name": lambda: CLAIMS.choose(("law-fit",), "nothing"),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_what_is_wrong_is_named(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_claims_are_measured_one_after_another():
    records = run_claims(CLAIMS.choose(), SMALL)
    assert [next(records).name, next(records).name] == list(CLAIMS)[:2]


def test_claims_are_chosen_by_name_and_pattern():
    def names(*args):
        return [entry.name for entry in CLAIMS.choose(*args)]

    assert names() == list(CLAIMS)
    assert names(("law-fit", "lemma1-order", "law-fit")) == ["lemma1-order", "law-fit"]
    assert names((), "law-") == ["law-fit", "law-algorithms", "law-prediction"]
    assert names(("thermostat",), "law-f*t") == ["law-fit", "thermostat"]


class Made:
    """Subject of the claim that `made` registers."""

    sign = 1.0


@pytest.fixture
def made(monkeypatch):
    """A claim that a sign error turns and that another fault does not."""
    monkeypatch.delitem(CLAIMS, "made", raising=False)
    yield claim(
        "made",
        **EMPTY,
        mutations=(
            Mutation("the sign were wrong", Swap(Made, "sign", lambda x: -x)),
            Mutation("it were larger", Swap(Made, "sign", lambda x: 2 * x)),
        ),
    )(lambda effort: Finding("", {}, judge(Made.sign > 0)))
    del CLAIMS["made"]


def test_power_is_measured_on_demand(made):
    assert made(SMALL).mutated is None
    assert made(SMALL).unnoticed == ()
    record = made(SMALL, power=True)
    assert record.mutated == {"the sign were wrong": FAILS, "it were larger": HOLDS}
    assert record.unnoticed == ("it were larger",)
    assert record.as_expected


def test_a_mutation_of_nothing_is_named(made):
    broken = replace(made, mutations=(Mutation("it were gone", Swap(Made, "sing", lambda x: x)),))
    with pytest.raises(ValueError, match=r"claim 'made', mutation 'it were gone': .*has no attribute 'sing'"):
        broken(SMALL, power=True)
    assert "without a mutation, so that nothing shows they can fail: made" in report.summary(
        [replace(made, mutations=())(SMALL, power=True)]
    )
