"""The command line of the figures, and the page."""

import json

import pytest

from toybandit.cli import main
from toybandit.reproduce import FIGURES, OUT_OF_REACH

NAME = "entropy-mechanism-table-1"


def test_list_names_everything(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    assert main(["reproduce", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*FIGURES, *OUT_OF_REACH))


def test_figures_and_their_page(tmp_path, capsys):
    page = tmp_path / "docs/figures.md"
    page.parent.mkdir()
    out = tmp_path / "out"
    assert main(["reproduce", NAME, NAME, "--quick", "--out", str(out), "--page", str(page)]) == 0
    told = capsys.readouterr().out.splitlines()
    found = json.loads((out / f"{NAME}.json").read_text())["found"]
    assert told == [f"{NAME}: {found}", f"1 figures; {out}", str(page)]
    written = page.read_text()
    assert f'src="figures/{NAME}.png"' in written
    assert f"<code>toybandit reproduce {NAME} --quick</code>" in written
    assert "Entropy Mechanism, table 1" in written
    assert all(f"| `{name}` | {reason} |" in written for name, reason in OUT_OF_REACH.items())
    assert (tmp_path / f"docs/figures/{NAME}.png").read_bytes() == (out / f"{NAME}.png").read_bytes()


def test_a_full_figure_is_not_written_over_by_a_quick_one(tmp_path, capsys):
    command = ["reproduce", NAME, "--quick", "--out", str(tmp_path)]
    (tmp_path / f"{NAME}.json").write_text(json.dumps({"command": f"toybandit reproduce {NAME}"}))
    assert main(command) == 2
    assert f"holds {NAME} without --quick: choose another --out, or pass --overwrite" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert main(command) == 0


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "name a figure, or all; toybandit reproduce list"),
        (["nope"], "unknown figure 'nope'; toybandit reproduce list"),
        (["all", "revisiting-3"], "unknown figure 'all'"),
        (["revisiting-2"], "a bandit cannot show revisiting-2: calibration"),
        (["revisiting-3", "--bogus"], "unknown option --bogus"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(names, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *names]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not list(tmp_path.iterdir())
