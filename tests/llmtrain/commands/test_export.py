"""`llmtrain export`: a folder that transformers loads, and a model card that says what the log says."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.policy.checkpoint import latest
from llmtrain.training.run import train_run


@pytest.fixture(scope="module")
def run(small, tmp_path_factory):
    """Folder of a finished run of four steps, evaluated after two and four."""
    out = tmp_path_factory.mktemp("runs") / "held"
    checkpoint = replace(small.checkpoint, keep_last=4)
    config = replace(small, out=str(out), controller="clip_higher+entropic", target=0.3, checkpoint=checkpoint)
    assert train_run(config) == 0
    return out


@pytest.mark.slow
def test_the_folder_is_the_model(run, tmp_path):
    assert main(["export", str(run), "--out", str(tmp_path / "model")]) == 0
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert not names & {"state.json", "state.tensors", "checksums.json", "README.md"}
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    there = AutoModelForCausalLM.from_pretrained(latest(run))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), there.parameters(), strict=True))
    assert AutoTokenizer.from_pretrained(tmp_path / "model").decode([3])


@pytest.mark.slow
def test_the_card_says_what_the_log_says(run, tmp_path):
    assert main(["export", str(run), "--out", str(tmp_path / "model"), "--hub-card"]) == 0
    _, metadata, card = (tmp_path / "model/README.md").read_text().split("---\n", 2)
    found = yaml.safe_load(metadata)
    assert found["tags"] == ["rlvr", "entropy-control", "entrostat", "clip_higher", "entropic"]
    assert "base_model" not in found
    metrics = read_metrics(run)
    (last,) = (line for line in metrics if "eval/pass@2" in line and line["step"] == 4)
    score, low, high = (last[f"eval/pass@2{end}"] for end in ("", "/low", "/high"))
    assert f"| pass@2 | {score:.3f} | {low:.3f} to {high:.3f} |" in card
    assert f"| entropy (nats) | {metrics[0]['entropy']:.3f} |" in card
    assert "Target of the entropy: 0.3 " in card
    assert card.startswith("\n# model\n")
    assert "controller: clip_higher+entropic" in card
    assert str(run.parent) not in card
    assert f"entrostat {json.loads((run / 'manifest.json').read_text())['versions']['entrostat']}" in card
    assert (tmp_path / "model/training.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_best_checkpoint_and_the_log_up_to_it(run, tmp_path):
    scores = {line["step"]: line["eval/avg@2"] for line in read_metrics(run) if "eval/avg@2" in line}
    best = max((score, step) for step, score in scores.items() if step)[1]
    assert main(["export", str(run), "--out", str(tmp_path / "a"), "--best", "eval/avg@2", "--hub-card"]) == 0
    assert f"After {best} rollout steps." in (tmp_path / "a/README.md").read_text()


@pytest.mark.slow
def test_a_folder_that_holds_something_is_left_alone(run, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["export", str(run), "--out", str(tmp_path)]) == 2
    assert f"--out {tmp_path} is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.slow
def test_a_damaged_checkpoint_is_not_exported(run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "run")
    weights = latest(tmp_path / "run") / "model.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-1] ^= 1
    weights.write_bytes(damaged)
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "model")]) == 2
    assert "model.safetensors" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_run_is_asked_for(tmp_path, capsys):
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "x")]) == 2
    assert "config.yaml" in capsys.readouterr().err
