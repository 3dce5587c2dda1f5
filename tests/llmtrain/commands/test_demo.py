"""The demo: its runs, picture and table."""

from dataclasses import replace
from pathlib import Path

import pytest
from holder import held

from entrostat.logs.runlog import read_metrics
from entrostat.settings.out_folder import LOCK
from llmtrain.cli import main
from llmtrain.commands import demo
from llmtrain.training.run import run_config


def test_help_of_the_demo_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        demo.main(["--help"])
    assert left.value.code == 0
    assert "demo" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_demo_leaves_alone_what_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with held("runs/demo/thermostat"):
        assert main(["demo"]) == 2
    assert capsys.readouterr().err == "error: another process trains in runs/demo/thermostat\n"
    assert {path.name for path in Path("runs/demo").glob("*/*")} == {LOCK}


@pytest.mark.slow
def test_it_trains_its_runs_and_draws_them(small, tmp_path, monkeypatch, capsys):
    """In small: two steps instead of 300, and a model that is warmed up already."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "base", lambda: replace(small, steps=2, overwrite=True))
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    rows = [line.split()[0] for line in said.partition("pass@")[2].splitlines() if line.split()]
    for name in demo.RUNS:
        assert name in rows
        assert [line["step"] for line in read_metrics(demo.OUT / name)] == [0, 1, 2]
        assert run_config(demo.OUT / name).controller == demo.RUNS[name]["controller"]
    assert "runs/demo/entropy.png: entropy, reward and pass@8 of 3 of 3 runs" in " ".join(said.split())
    assert demo.PICTURE.read_bytes().startswith(b"\x89PNG")
