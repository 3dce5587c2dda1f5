"""A run folder is data: what it says about trust counts for nothing, and names that it imports are told."""

import json
from dataclasses import replace

import pytest

import entrostat
from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.settings.config import DataConfig, ModelConfig, RewardConfig, TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training.run import own_names, run_config


def test_what_a_folder_says_about_trust_counts_for_nothing(tmp_path):
    config = TrainConfig(model=ModelConfig(trust_remote_code=True))
    (tmp_path / "config.yaml").write_text(dump_yaml(to_dict(config)))
    assert not run_config(tmp_path).model.trust_remote_code
    assert run_config(tmp_path, trusted=True) == config


def test_a_name_of_ones_own_is_told_with_its_file(tmp_path, monkeypatch):
    (tmp_path / "judging.py").write_text("def mine(response, truth): return True\n")
    monkeypatch.chdir(tmp_path)
    config = TrainConfig(data=DataConfig(verifier="judging:mine"), reward=RewardConfig(function="nowhere_at_all:f"))
    assert list(own_names(config)) == [
        f"data.verifier imports judging from {tmp_path / 'judging.py'}",
        "reward.function imports nowhere_at_all from nowhere: there is no such module",
    ]
    assert list(own_names(replace(config, data=DataConfig(), reward=RewardConfig(), advantage="qae k=0.6"))) == []


@pytest.mark.parametrize(("made", "newer"), [("9.1.0", True), ("0.1.0", False), ("0.2", False), (None, False)])
def test_a_run_of_a_newer_version_is_told(made, newer, tmp_path, capsys):
    """Its settings may be known here or not."""
    (tmp_path / "config.yaml").write_text("steps: 3\n")
    (tmp_path / "manifest.json").write_text(json.dumps({"versions": {"entrostat": made} if made else {}}))
    said = rf"{tmp_path} was made by version {made}, and this is {entrostat.__version__}"
    assert run_config(tmp_path).steps == 3
    assert capsys.readouterr().err.startswith(said) == newer
    (tmp_path / "config.yaml").write_text("steps: 3\nmuon: true\n")
    with pytest.raises(ValueError, match=rf"unknown key muon.*{f'; {said}' if newer else ''}$"):
        run_config(tmp_path)
