"""`toybandit verify`: its lines, its page with pictures, and its exit code."""

import json
from dataclasses import replace

import pytest

from toybandit import cli
from toybandit.claims import CLAIMS
from toybandit.claims.mutations import Mutation, Swap, always
from toybandit.claims.registry import FAILS, HOLDS

TWO = ("thm1-centred", "thm1-any-advantage")


class Made:
    size = 1


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
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["1/2 thm1-centred: holds", "2/2 thm1-any-advantage: fails as stated"]
    assert printed[2].startswith("2 claims; all verdicts as expected; false failure")
    first, second = json.loads((tmp_path / "theory" / "claims.json").read_text())
    assert (first["verdict"], second["verdict"]) == (HOLDS, FAILS)
    assert second["numbers"]["slope"] == pytest.approx(1, abs=0.1)
    assert first["as_expected"] is True
    assert first["false_failure"] == 0
    page = (tmp_path / "theory.md").read_text()
    assert "1 of 2 claims hold as stated. 2 claims; all verdicts as expected;" in page
    assert f"    toybandit verify --quick --out {tmp_path}" in page
    assert "| [thm1-centred](#thm1-centred) | Entropy Mechanism | holds | " in page
    assert "**Fails as stated.** Without a baseline" in page
    assert "](theory/thm1-centred.png)" in page
    assert (tmp_path / "theory" / "thm1-centred.png").stat().st_size > 5000


def test_claims_of_a_page_are_measured_anew(two_claims, tmp_path, capsys):
    """The others stay as they are, and so do the command of the page and its mutations."""
    assert cli.main(["verify", "--power", "--out", str(tmp_path)]) == 0
    path = tmp_path / "theory" / "claims.json"
    before = json.loads(path.read_text())
    path.write_text(json.dumps([record | {"measured": "of old"} for record in before]))
    (tmp_path / "theory" / "thm1-centred.png").unlink()
    assert cli.main(["verify", TWO[0], "--update", str(tmp_path)]) == 0
    assert json.loads(path.read_text()) == [before[0], before[1] | {"measured": "of old"}]
    assert before[0]["mutated"]
    assert (tmp_path / "theory" / "thm1-centred.png").exists()
    page = (tmp_path / "theory.md").read_text()
    assert f"    toybandit verify --power --out {tmp_path}" in page
    assert page.count("of old") == 1
    capsys.readouterr()
    path.write_text(json.dumps(before[:1]))
    assert cli.main(["verify", TWO[0], "--update", str(tmp_path)]) == 2
    assert f"the page in {tmp_path} lacks thm1-any-advantage: name them too" in capsys.readouterr().err
    path.write_text(json.dumps([before[0] | {"x": 1}]))
    assert cli.main(["verify", "--update", str(tmp_path)]) == 2
    assert "claims.json is of another version" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--quick"], ["--out", "x"], ["--power"]])
def test_what_a_page_says_is_not_said_again(two_claims, tmp_path, capsys, flags):
    assert cli.main(["verify", TWO[0], "--update", str(tmp_path), *flags]) == 2
    assert "--update measures as its page says: leave --quick, --power and --out out" in capsys.readouterr().err


def test_only_a_page_of_all_claims_is_updated(two_claims, tmp_path, capsys):
    assert cli.main(["verify", TWO[0], "--update", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path} has no page of all claims: write it with toybandit verify --power --out {tmp_path}" in told


def test_a_full_page_is_not_written_over_by_a_quick_one(two_claims, tmp_path, capsys):
    command = ["verify", "--quick", "--out", str(tmp_path)]
    (tmp_path / "theory.md").write_text("# The theory\n\n    toybandit verify --out docs\n\n--quick\n")
    assert cli.main(command) == 2
    assert "holds all claims without --quick: choose another --out, or pass --overwrite" in capsys.readouterr().err
    assert cli.main([*command, "--overwrite"]) == 0
    assert cli.main(command) == 0


def test_a_verdict_that_is_not_expected(two_claims, tmp_path, capsys):
    two_claims(HOLDS)
    assert cli.main(["verify", "--quick", "--out", str(tmp_path)]) == 1
    assert "not as expected: thm1-any-advantage" in capsys.readouterr().out
    assert "fails as stated (expected: holds)" in (tmp_path / "theory.md").read_text()


def test_named_claims_are_told_in_detail_and_written_only_on_demand(two_claims, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["verify", "thm1-centred", "--quick"]) == 0
    first, *details, last = capsys.readouterr().out.splitlines()
    assert first == "1/1 thm1-centred: holds"
    assert any(line.startswith("    Measured: median slope") for line in details)
    assert last.startswith("1 claim; all verdicts as expected")
    assert not list(tmp_path.iterdir())


def test_json_is_all_that_is_on_standard_output(two_claims, capsys):
    assert cli.main(["verify", "--only", "thm1-a", "--quick", "--json"]) == 0
    printed = capsys.readouterr()
    (record,) = json.loads(printed.out)
    assert (record["name"], record["as_expected"]) == ("thm1-any-advantage", True)
    assert "1/1 thm1-any-advantage: fails as stated" in printed.err


def test_a_page_of_all_claims_is_not_written_over_by_one_of_some(two_claims, tmp_path, capsys):
    (tmp_path / "theory.md").write_text("# The theory\n\n    toybandit verify --power --out docs\n")
    command = ["verify", "thm1-centred", "--out", str(tmp_path)]
    assert cli.main(command) == 2
    assert "holds all claims without --quick" in capsys.readouterr().err
    assert cli.main([*command, "--overwrite", "--quick"]) == 0
    assert cli.main([*command, "--quick"]) == 0


@pytest.mark.slow
def test_a_mutation_that_is_not_noticed(two_claims, tmp_path, capsys, monkeypatch):
    nothing = Mutation("nothing changed", Swap(Made, "size", always(1)))
    monkeypatch.setitem(CLAIMS, TWO[0], replace(CLAIMS[TWO[0]], mutations=(nothing,)))
    command = ["verify", "--only", "thm1-c", "--quick", "--out", str(tmp_path)]
    assert cli.main(command) == 0
    assert cli.main([*command, "--power"]) == 1
    printed = capsys.readouterr().out
    assert "thm1-centred: holds; 0 of 1 mutations turn it; not noticed: nothing changed" in printed
    assert "1 mutation, not noticed by thm1-centred" in printed
    assert "nothing changed (not noticed)" in (tmp_path / "theory.md").read_text()
