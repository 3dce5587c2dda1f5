"""`toybandit verify`: its table, its page with pictures, and its exit code."""

import json
from dataclasses import replace

import pytest

from toybandit import cli
from toybandit.claims import CLAIMS
from toybandit.claims.registry import FAILS, HOLDS

TWO = ("thm1-centred", "thm1-any-advantage")


@pytest.fixture
def two_claims(monkeypatch):
    """Only two quick claims; returns the function that changes what the second expects."""
    for name in list(CLAIMS):
        if name not in TWO:
            monkeypatch.delitem(CLAIMS, name)

    def expect(verdict):
        monkeypatch.setitem(CLAIMS, TWO[1], replace(CLAIMS[TWO[1]], expected=verdict))

    return expect


def test_report(two_claims, tmp_path, capsys):
    assert cli.main(["verify", "--quick", "--out", str(tmp_path)]) == 0
    assert "2 claims, all verdicts as expected" in capsys.readouterr().out
    first, second = json.loads((tmp_path / "theory" / "claims.json").read_text())
    assert (first["verdict"], second["verdict"]) == (HOLDS, FAILS)
    assert second["numbers"]["slope"] == pytest.approx(1, abs=0.1)
    assert first["as_expected"] is True
    assert first["false_failure"] == 0
    page = (tmp_path / "theory.md").read_text()
    assert "2 claims, of which 1 hold as stated and 0 have an unexpected verdict;" in page
    assert f"    toybandit verify --quick --out {tmp_path}" in page
    assert "| [thm1-centred](#thm1-centred) | Entropy Mechanism | holds |" in page
    assert "**Fails as stated.** Without a baseline" in page
    assert "](theory/thm1-centred.png)" in page
    assert (tmp_path / "theory" / "thm1-centred.png").stat().st_size > 5000


def test_a_full_page_is_not_written_over_by_a_quick_one(two_claims, tmp_path, capsys):
    command = ["verify", "--quick", "--out", str(tmp_path)]
    (tmp_path / "theory.md").write_text("# The theory\n\n    toybandit verify --out docs\n\n--quick\n")
    assert cli.main(command) == 2
    assert "holds claims without --quick: choose another --out, or pass --overwrite" in capsys.readouterr().err
    assert cli.main([*command, "--overwrite"]) == 0
    assert cli.main(command) == 0


def test_a_verdict_that_is_not_expected(two_claims, tmp_path, capsys):
    two_claims(HOLDS)
    assert cli.main(["verify", "--quick", "--out", str(tmp_path)]) == 1
    assert "not as expected: thm1-any-advantage" in capsys.readouterr().out
    assert "fails as stated (expected: holds)" in (tmp_path / "theory.md").read_text()
