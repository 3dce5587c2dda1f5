"""Sinks of a run besides its run log: event files and W&B's offline runs are read back, traces opened."""

import gzip
import json
import math
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from entrostat.logs.foreign.foreign_runs import read_path
from entrostat.logs.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.settings.config import LogConfig, ProfileConfig, TrainConfig
from llmtrain.training.check import check
from llmtrain.training.telemetry import TensorBoard, WatchedRunLog, check_sinks
from llmtrain.training.trainer import Trainer

pytest.importorskip("tensorboard")


@pytest.fixture(autouse=True)
def numbers_of_event_files(monkeypatch):
    """Number them from 0: those of a second and process are read in the order of their names, where 10 is before 9."""
    from tensorboard.summary.writer import event_file_writer

    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))


def scalars(folder) -> dict[str, list[tuple[int, float]]]:
    """(step, value) of every metric in the event files of a folder, as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_a_run_in_tensorboard_resumed_and_traced(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), steps=2, profile=ProfileConfig(steps=(1,)))
    Trainer(config, small.model.path).run()
    assert [step for step, _ in scalars(tmp_path / "run" / "tensorboard")["entropy"]] == [0, 1]

    (trace,) = (tmp_path / "run" / "trace").iterdir()
    assert trace.name == "step-1-rank-0.json.gz"
    with gzip.open(trace) as file:
        names = {event["name"] for event in json.load(file)["traceEvents"]}
    assert "aten::mm" in names

    Trainer(replace(config, steps=4), config.out, resume=True).run()
    shown = scalars(tmp_path / "run" / "tensorboard")
    lines = read_metrics(tmp_path / "run")
    for name in ("entropy", "reward", "loss", "eval/pass@2", "time/step"):
        expected = [(line["step"], line[name]) for line in lines if name in line]
        assert [step for step, _ in shown[name]] == [step for step, _ in expected]
        assert [x for _, x in shown[name]] == pytest.approx([x for _, x in expected], rel=1e-6)
    assert [step for step, _ in shown["entropy"]] == [0, 1, 2, 3]
    assert len(list((tmp_path / "run" / "trace").iterdir())) == 1


def test_steps_after_the_one_that_is_resumed_at_are_void(tmp_path):
    first = TensorBoard(tmp_path, None)
    for step in range(5):
        first.log(step, {"x": float(step)})  # left open, as by a crash: the lines are there all the same
    second = TensorBoard(tmp_path, resume_at=3)
    second.log(3, {"x": 30.0})
    second.close()
    assert scalars(tmp_path)["x"] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 30.0)]
    anew = TensorBoard(tmp_path, None)
    anew.log(0, {"x": math.inf})
    anew.close()
    assert scalars(tmp_path)["x"] == [(0, math.inf)]


def written_to(path):
    """Metrics in a file of W&B, whose own process may still write it after the run has finished."""
    for _ in range(300):
        with suppress(ValueError):
            return read_path(path)[0].metrics
        time.sleep(0.1)
    return read_path(path)[0].metrics


@pytest.mark.slow
def test_wandb_goes_on_with_its_run(small, tmp_path, monkeypatch):
    """The library of W&B itself, offline; its files are read back."""
    wandb = pytest.importorskip("wandb")
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}.items():
        monkeypatch.setenv(name, value)
    settings = LogConfig(tensorboard=False, wandb=True, wandb_project="mine")
    config = replace(small, out=str(tmp_path / "run"), log=settings)
    check(config)
    known = set()
    ids = []
    for resume_at in (None, 1, None):
        log = WatchedRunLog(config, resume_at)
        log.log(resume_at or 0, {"reward": 0.5})
        log.close()
        (new,) = set((tmp_path / "run").glob("wandb/offline-run-*/run-*.wandb")) - known
        known.add(new)
        ids.append(new.stem)
        assert written_to(new) == [{"step": resume_at or 0, "reward": 0.5}]
        written = new.read_bytes()
        assert b"mine" in written
        assert f'"lr":{small.optim.lr}'.encode() in written
    wandb.teardown()
    assert ids[0] == ids[1] != ids[2]
    assert not (tmp_path / "run" / "tensorboard").exists()


@pytest.mark.parametrize("name", ["wandb", "tensorboard"])
def test_what_is_not_installed_is_told(small, name, monkeypatch):
    monkeypatch.setattr("llmtrain.training.telemetry.find_spec", lambda package: None)
    config = replace(small, log=LogConfig(**{"tensorboard": False, name: True}))
    with pytest.raises(ValueError, match=f"pip install {name}"):
        check(config)


def test_a_missing_login_is_told_before_a_run(small, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    config = replace(small, log=LogConfig(tensorboard=False, wandb=True))
    for known in ("", "machine elsewhere.org login user password key\n"):
        (tmp_path / ".netrc").write_text(known)
        with pytest.raises(ValueError, match=r"log\.wandb .*`wandb login`"):
            check_sinks(config)
    (tmp_path / ".netrc").write_text("machine api.wandb.ai login user password key\n")
    check_sinks(config)
    (tmp_path / ".netrc").unlink()
    monkeypatch.setenv("WANDB_MODE", "offline")
    check_sinks(config)


def test_flags(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    out = capsys.readouterr().out
    for flag in ("--log.no-tensorboard", "--log.wandb", "--log.wandb-project", "--profile.steps"):
        assert flag in out


def test_steps_to_trace_are_not_negative():
    with pytest.raises(ValueError, match=r"profile.steps .* -1"):
        TrainConfig(profile=ProfileConfig(steps=(3, -1)))


def test_the_configuration_needs_no_torch():
    code = "import sys, llmtrain.settings.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
