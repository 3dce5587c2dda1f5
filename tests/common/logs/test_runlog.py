import json
from pathlib import Path

import pytest
import torch
import yaml

from entrostat.logs.runlog import RunLog, read_lines, read_metrics, target_of, trained_steps


def test_what_is_written_can_be_read(tmp_path):
    log = RunLog(tmp_path / "a" / "run", {"steps": 3, "controller": "steer"}, seed=5)
    log.log(0, {"entropy": torch.tensor(0.5), "reward": float("nan")})
    log.log(1, {"entropy": 0.25})
    log.sample(1, response="1+2", reward=1.0)
    assert read_metrics(log.path) == [{"step": 0, "entropy": 0.5, "reward": None}, {"step": 1, "entropy": 0.25}]
    log.close()
    assert yaml.safe_load((log.path / "config.yaml").read_text()) == {"steps": 3, "controller": "steer"}
    manifest = json.loads((log.path / "manifest.json").read_text())
    assert manifest["seed"] == 5
    assert {"entrostat", "torch", "numpy", "python"} <= set(manifest["versions"])
    assert read_lines(log.path / "samples.jsonl") == [{"step": 1, "response": "1+2", "reward": 1.0}]


def test_resuming_drops_steps_that_will_be_done_again(tmp_path):
    log = RunLog(tmp_path, {}, seed=0)
    for step in range(5):
        log.log(step, {"entropy": float(step)})
    log.close()
    log = RunLog(tmp_path, {}, seed=0, resume_at=3)
    log.log(3, {"entropy": 30.0})
    log.close()
    assert [line["entropy"] for line in read_metrics(tmp_path)] == [0, 1, 2, 30]
    RunLog(tmp_path, {}, seed=0).close()
    assert read_metrics(tmp_path) == []


def test_resuming_keeps_who_began(tmp_path, monkeypatch):
    for words, resume_at in ((["train"], None), (["resume"], 1), (["resume", "again"], 2)):
        monkeypatch.setattr("sys.argv", words)
        RunLog(tmp_path, {}, seed=0, resume_at=resume_at).close()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["command"] == ["train"]
    assert [session["command"] for session in manifest["resumed"]] == [["resume"], ["resume", "again"]]
    RunLog(tmp_path, {}, seed=0).close()
    assert "resumed" not in json.loads((tmp_path / "manifest.json").read_text())


@pytest.mark.parametrize("name", ["config.yaml", "manifest.json", "metrics.jsonl", "samples.jsonl"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, name):
    log = RunLog(tmp_path, {"steps": 3}, seed=0)
    log.log(0, {"entropy": 1.0})
    log.sample(0, reward=1.0)
    log.close()
    before = (tmp_path / name).read_bytes()
    plain = Path.open

    def open_full(path, mode="r", *args, **settings):
        file = plain(path, mode, *args, **settings)
        return plain(Path("/dev/full"), mode) if "w" in mode and path.name.startswith(name) else file

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(OSError, match="No space left"):
        RunLog(tmp_path, {"steps": 3}, seed=0, resume_at=1)
    assert (tmp_path / name).read_bytes() == before


def test_a_torn_last_line_is_left_out_and_others_are_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"step"')
    assert read_metrics(tmp_path) == [{"step": 0}]
    path.write_bytes('{"step": 0}\n{"response": "é'.encode()[:-1])
    assert read_metrics(tmp_path) == [{"step": 0}]
    path.write_text('{"step"\n{"step": 0}\n')
    with pytest.raises(ValueError, match="line 1 is not JSON"):
        read_metrics(tmp_path)
    assert read_metrics(tmp_path / "nowhere") == []


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\r", "\x0b"])
def test_a_response_may_hold_any_line_separator(tmp_path, character):
    response = f"a{character}b"
    RunLog(tmp_path, {}, seed=0).sample(0, response=response)
    RunLog(tmp_path, {}, seed=0, resume_at=1).close()
    assert read_lines(tmp_path / "samples.jsonl") == [{"step": 0, "response": response}]


@pytest.mark.parametrize(
    ("config", "target"),
    [
        ({"target_entropy": 0.4}, 0.4),
        ({"target": 1}, 1.0),
        ({"controller_args": {"kp": 2, "entropic.target": 0.4}}, 0.4),
        ({"target_entropy": None, "controller_args": {"kp": 1}}, None),
        ({"target": "x", "controller_args": [1]}, None),
        ({"target": True}, None),
        ({}, None),
    ],
)
def test_the_target_of_a_run(config, target):
    assert target_of(config) == target


def test_a_line_of_evaluations_alone_is_no_step():
    trained = [{"step": step, "entropy": 0.5, "eval/pass@8": 0.4} for step in range(3)]
    assert trained_steps([*trained, {"step": 3, "eval/pass@8": 0.5, "val-core/acc/mean@8": 0.3}]) == 3
    assert trained_steps([*trained, {"step": 3, "value_loss": 0.5}, {"step": 4}]) == 4
    assert trained_steps([]) == 0
