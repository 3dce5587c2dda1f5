"""Older names of settings: understood everywhere a setting is read, and named once."""

import pytest

from entrostat.logs.runlog import RunLog, target_of
from llmtrain.settings.presets import read_config
from llmtrain.training.run import run_config, run_settings


@pytest.mark.parametrize("flag", [["--target-entropy", "0.4"], ["--target-entropy=0.4"], ["--target_entropy", "0.4"]])
def test_the_older_flag_sets_the_target(flag, capsys):
    assert read_config(["--controller", "entropic", *flag], "llmtrain train").target == 0.4
    assert capsys.readouterr().err == "target_entropy is now target\n"


def test_the_current_flag_says_nothing(capsys):
    assert read_config(["--controller", "entropic", "--target", "0.4"], "llmtrain train").target == 0.4
    assert capsys.readouterr().err == ""


def test_the_older_key_of_a_configuration_file(tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text("controller: entropic\ntarget_entropy: 0.4\n")
    assert read_config(["--config", str(file)], "llmtrain train").target == 0.4
    assert capsys.readouterr().err == "target_entropy is now target\n"


def test_both_names_in_one_file_are_refused(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("target_entropy: 0.4\ntarget: 0.3\n")
    with pytest.raises(
        ValueError, match=r"c\.yaml: target_entropy is the older name of target: leave target_entropy out"
    ):
        read_config(["--config", str(file)], "llmtrain train")


def test_runs_written_before_are_read_without_a_word(tmp_path, capsys):
    RunLog(tmp_path / "run", {"controller": "entropic", "target_entropy": 0.4}, seed=0)
    assert run_config(tmp_path / "run").target == 0.4
    assert target_of(run_settings(tmp_path / "run")) == 0.4
    assert capsys.readouterr().err == ""


def test_only_rank_0_prints(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    read_config(["--controller", "entropic", "--target-entropy", "0.4"], "llmtrain train")
    assert capsys.readouterr().err == ""
