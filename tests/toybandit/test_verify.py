"""`toybandit verify`: its lines, its page with pictures, and its exit code."""

import json
from dataclasses import replace

import pytest

from toybandit import cli, verify
from toybandit.claims import CLAIMS, stored_numbers
from toybandit.claims.mutations import Mutation, Swap, always
from toybandit.claims.registry import FAILS, HOLDS, QUICK, Effort, Finding
from toybandit.sweep import running

TWO = ("thm1-centred", "thm1-any-advantage")


class Made:
    size = 1


def without_baseline(effort: Effort) -> Finding:
    """Without a baseline the error is of first order."""
    return Finding("slope 1", {"slope": 1.0}, FAILS if Made.size == 1 else HOLDS)


@pytest.fixture
def two_claims(monkeypatch):
    """Only two quick claims, the second made here; returns the function that changes what that one expects."""
    for name in list(CLAIMS):
        if name not in TWO:
            monkeypatch.delitem(CLAIMS, name)
    larger = Mutation("the size were 2", Swap(Made, "size", always(2)))
    made = {"check": without_baseline, "expected": FAILS, "mutations": (larger,), "live": None, "theorem": None}
    monkeypatch.setitem(CLAIMS, TWO[1], replace(CLAIMS[TWO[0]], name=TWO[1], **made))

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
    assert "| [thm1-centred](#thm1-centred) | Entropy Mechanism | holds |" in page
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
    capsys.readouterr()
    assert cli.main(["verify", TWO[0], "--update", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith(f"; {tmp_path}\n")
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
    assert "1 fault put into the code, not noticed by thm1-centred" in printed
    assert "nothing changed (not noticed)" in (tmp_path / "theory.md").read_text()


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Folder of stored numbers; the repository's own are left alone."""
    folder = tmp_path / "docs" / "theory"
    folder.mkdir(parents=True)
    monkeypatch.setattr(stored_numbers, "FOLDER", folder)
    return folder


def test_a_number_that_has_moved(two_claims, stored, capsys):
    """The verdict stays, and the exit code and a line tell of the number."""
    command = ["verify", TWO[0], "--quick"]
    assert cli.main(command) == 0
    assert "stored" not in capsys.readouterr().out
    (stored / "quick.json").write_text(json.dumps({TWO[0]: {"slope": 2.0}}))
    assert cli.main(command) == 0
    assert "moved" not in capsys.readouterr().out
    (stored / "quick.json").write_text(json.dumps({TWO[0]: {"slope": 1.9}}))
    assert cli.main([*command, "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["as_expected"]
    assert "    thm1-centred: the number 'slope' has moved from the stored 1.9 to 1.99988" in printed.err
    assert "; numbers of 1 claim compared with docs/theory: 1 moved\n" in printed.err


def test_a_page_in_docs_replaces_the_stored_numbers(two_claims, stored, capsys):
    """Full and quick ones; what has moved is told, and is no failure."""
    docs = str(stored.parent)
    assert cli.main(["verify", "--out", docs]) == 0
    assert set(stored_numbers.read(True)) == set(stored_numbers.read(False)) == set(TWO)
    path = stored / "claims.json"
    content = json.loads(path.read_text())
    content[0]["numbers"]["slope"] = 3.0
    path.write_text(json.dumps(content))
    capsys.readouterr()
    assert cli.main(["verify", TWO[0]]) == 1
    assert cli.main(["verify", TWO[0], "--update", docs]) == 0
    assert capsys.readouterr().out.count("has moved from the stored 3") == 2
    assert cli.main(["verify", TWO[0]]) == 0


def test_records_come_in_order_whichever_claim_ends_first(two_claims, monkeypatch):
    def backwards(function, given, workers, crashed):
        assert workers == 2
        yield from reversed([(place, function(one)) for place, one in enumerate(given)])

    monkeypatch.setattr(running, "in_processes", backwards)
    found = list(verify.measured(list(CLAIMS.values()), QUICK, verify.VerifyFlags(workers=2, power=True)))
    assert [record.name for record in found] == list(TWO)
    assert found[1].mutated == {"the size were 2": HOLDS}


@pytest.mark.slow
def test_processes_change_nothing(capsys):
    """Of what is printed, of the numbers, and of the verdicts under mutations."""
    command = ["verify", "thm1-centred", "thm1-without-baseline", "--quick", "--power", "--json"]
    assert cli.main(command) == 0
    alone = capsys.readouterr()
    assert cli.main([*command, "--workers", "2"]) == 0
    assert capsys.readouterr() == alone
    assert [record["mutated"] is not None for record in json.loads(alone.out)] == [True, True]


def test_workers_are_at_least_one(capsys):
    assert cli.main(["verify", "thm1-centred", "--quick", "--workers", "0"]) == 2
    assert "--workers must be at least 1" in capsys.readouterr().err
