"""Every claim reaches its expected verdict, and verdicts follow from measurements."""

import json

import pytest

from toybandit import cli
from toybandit.claims import CLAIMS, Effort, Finding, claim, run_claims
from toybandit.claims.registry import FAILS, HOLDS, holds_if, judge

SMALL = Effort(instances=12, runs=2)


@pytest.mark.parametrize("name", CLAIMS)
def test_verdict_is_the_expected_one(name):
    record = CLAIMS[name](SMALL)
    assert record.verdict == record.expected, record.measured
    assert record.as_expected
    assert record.numbers
    assert all(isinstance(value, float) for value in record.numbers.values())
    assert record.source
    assert record.assumption
    assert record.predicted


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
        claim("lemma1-order", source="", assumption="", predicted="", expected=HOLDS)(
            lambda effort: Finding("", {}, "")
        )


@pytest.fixture
def two_claims(monkeypatch):
    """Only two quick claims; returns the function that changes what the second expects."""
    for name in list(CLAIMS):
        if name not in ("thm1-centred", "thm1-any-advantage"):
            monkeypatch.delitem(CLAIMS, name)

    def expect(verdict):
        entry = CLAIMS["thm1-any-advantage"]
        changed = type(entry)(**{**vars(entry), "expected": verdict})
        monkeypatch.setitem(CLAIMS, "thm1-any-advantage", changed)

    return expect


def test_verify_writes_its_report(two_claims, tmp_path, capsys):
    assert cli.main(["verify", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "2 claims, all verdicts as expected" in shown
    first, second = json.loads((tmp_path / "verify.json").read_text())
    assert (first["verdict"], second["verdict"]) == (HOLDS, FAILS)
    assert second["numbers"]["slope"] == pytest.approx(1, abs=0.1)
    assert first["as_expected"] is True
    lines = (tmp_path / "verify.md").read_text().splitlines()
    assert lines[2].startswith("| claim | source | assumption | predicted | measured | verdict |")
    assert lines[4].startswith("| thm1-centred | Entropy Mechanism, theorem 1 | policy gradient, E_π[A] = 0 |")


def test_verify_fails_on_a_verdict_that_is_not_expected(two_claims, tmp_path, capsys):
    two_claims(HOLDS)
    assert cli.main(["verify", "--quick", "--out", str(tmp_path)]) == 1
    assert "not as expected: thm1-any-advantage" in capsys.readouterr().out
    assert "fails as stated (expected: holds)" in (tmp_path / "verify.md").read_text()


def test_full_effort_measures_the_same_claims(two_claims):
    assert [record.name for record in run_claims(SMALL)] == ["thm1-centred", "thm1-any-advantage"]
