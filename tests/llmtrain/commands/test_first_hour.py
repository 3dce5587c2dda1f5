"""`llmtrain first-hour`: all parts on a CPU, and parts that fail or are skipped."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="make install")
pytest.importorskip("deepspeed", reason="make install")
pytest.importorskip("ray", reason="make install")

from rich.console import Console

from llmtrain.cli import main
from llmtrain.commands import first_hour as hour
from llmtrain.doctor import hour_parts as parts
from llmtrain.doctor import shapes, trial_run
from llmtrain.doctor.checks import Skip
from llmtrain.doctor.hour_parts import PARTS, Machine
from llmtrain.doctor.trial_run import Failed

SOME = {"cpu"}
"""Parts that are run by `make test-all`; `make test-long` runs the others."""
OTHERS = PARTS.keys() - SOME


@pytest.fixture(scope="module", params=[SOME, pytest.param(OTHERS, marks=pytest.mark.long)])
def report(request, tmp_path_factory):
    """Return the report of some parts, and its output."""
    folder = tmp_path_factory.mktemp("hour")
    command = [sys.executable, "-m", "llmtrain", "first-hour", "--device", "cpu", "--out", "report.json", "--only"]
    done = subprocess.run([*command, *request.param], cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / "report.json").read_text())
    assert found["parts"].keys() == request.param
    return found, done.stdout


@pytest.mark.slow
def test_parts_end_green_on_a_cpu(report):
    found, said = report
    assert {part["verdict"] for part in found["parts"].values()} == {"ok"}
    assert ("predicted / measured" in said) == ("large" in found["parts"])
    assert ("dense torch" in said) == ("kernels" in found["parts"])
    assert said.endswith("report: report.json\n")
    assert found["machine"]["device"] == "cpu"
    assert found["machine"]["versions"]["torch"].startswith("2.")


@pytest.mark.long
@pytest.mark.parametrize("report", [OTHERS], indirect=True)
def test_trainings_are_measured_beside_their_plan(report):
    trained = {name: part["found"] for name, part in report[0]["parts"].items() if "predicted" in part["found"]}
    assert trained.keys() == {"small", "small-ray", "large"}
    for run in trained.values():
        assert len(run["measured"]["entropy"]) == parts.STEPS
        assert min(run["measured"]["grad_norm"]) > 0, "every step moves the weights"
        assert run["measured"]["mismatch"]["mismatch/ratio_max"] == pytest.approx(1, abs=1e-3)
        for phase, seconds in run["measured"]["seconds"].items():
            assert seconds > 0
            assert run["predicted"]["seconds"][phase] > 0
        assert run["measured"]["step_seconds"] == pytest.approx(sum(run["measured"]["seconds"].values()), rel=0.2)
        assert "in place of this device" in run["predicted_for"]


@pytest.mark.long
@pytest.mark.parametrize("report", [OTHERS], indirect=True)
def test_a_killed_engine_is_named_and_the_run_resumed(report):
    found = report[0]["parts"]["kill"]["found"]
    assert "rollout engine 0" in found["said"]
    assert 2 <= found["killed_after_steps"] < parts.STEPS
    assert len(found["entropy"]) == parts.STEPS


@pytest.mark.slow
@pytest.mark.parametrize("report", [SOME], indirect=True)
def test_the_same_seed_is_the_same_run(report):
    entropy = report[0]["parts"]["cpu"]["found"]["entropy"]
    assert entropy["here"] == entropy["on-cpu"]


@pytest.fixture
def machine(tmp_path):
    return Machine("cpu", 0, "h100", False, tmp_path)


def broken(machine):
    raise RuntimeError("no such thing\nat all")


def small(machine):
    raise Skip("too small")


def lost(machine):
    raise Failed("three steps are missing")


def fine(machine):
    """Works."""
    return {"x": 1.0}


def test_parts_that_fail_do_not_end_the_others(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parts, "PARTS", {"broken": broken, "small": small, "lost": lost, "fine": fine})
    monkeypatch.chdir(tmp_path)
    assert main(["first-hour", "--device", "cpu"]) == 1
    found = json.loads(Path("report.json").read_text())["parts"]
    assert {name: (part["verdict"], part.get("reason")) for name, part in found.items()} == {
        "broken": ("failed", "RuntimeError: no such thing at all"),
        "small": ("skipped", "too small"),
        "lost": ("failed", "three steps are missing"),
        "fine": ("ok", None),
    }
    said = capsys.readouterr().out
    assert "lost       failed" in said
    assert main(["first-hour", "--device", "cpu", "--only", "small", "fine"]) == 0


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ("--device cuda", ["device cuda", "--device cpu"]),
        ("--device cpu --only fast", ["'fast'", "doctor, small, small-ray,"]),
        ("--device cpu --small none", ["--small none"]),
        ("--device cpu --out none/report.json", ["none"]),
    ],
)
def test_bad_input_is_told_before_anything_is_tried(flags, names, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["first-hour", *flags.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert all(name in line for name in names)


def config_json(folder, hidden, layers, heads):
    shape = {"model_type": "qwen2", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    shape |= {"num_key_value_heads": 8, "intermediate_size": 29_568, "vocab_size": 152_064}
    shape |= {"max_position_embeddings": 32_768, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(shape))


def test_a_machine_that_is_too_small_is_told_why(machine, tmp_path, monkeypatch):
    """A 70B model on one GPU of 80 GiB; a 32B model, whose optimizer does not fit on the host; an unknown GPU."""
    one = replace(machine, device="cuda", gpus=1, known=True, large=tmp_path)
    monkeypatch.setattr(parts, "host_memory", lambda: 64 << 30)
    for shape, known, names in (
        ((8192, 80, 64), True, r"GiB .*h100 .*79\.6"),
        ((5120, 64, 40), True, r"\d{3} GiB of host memory .*64"),
        ((5120, 64, 40), False, "a100, h100"),
    ):
        config_json(tmp_path, *shape)
        with pytest.raises(Skip, match=names):
            parts.large(replace(one, known=known))


def test_a_run_without_all_its_steps_is_a_failure(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "time/step": 1.0}\n')
    with pytest.raises(Failed, match="has 1 of 5 steps"):
        trial_run.measured(tmp_path, 5)
    assert trial_run.steps_done(tmp_path) == 1
    assert trial_run.steps_done(tmp_path / "none") == 0


@pytest.mark.slow
def test_a_command_that_does_not_end_is_ended(tmp_path):
    with pytest.raises(Failed, match=r"not finished within 0\.5 s"):
        trial_run.llmtrain(["doctor", "torch"], 0.5)
    assert trial_run.llmtrain(["plan", "--model", "none"], 60.0).code == 2


def test_an_engine_is_looked_for_among_the_processes_of_the_run():
    assert not trial_run.kill_engine(os.getpid())
    command = [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)", "EngineCore"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()  # it runs
        assert trial_run.kill_engine(os.getpid())
        assert child.wait(10) == -9


def test_models_have_the_shape_that_is_asked_for(tmp_path):
    import torch

    from llmtrain.policy.model import load

    shape = replace(shapes.TINY, layers=1, tied=False)
    folder = shapes.build(shape, tmp_path / "model", "cpu", torch.bfloat16)
    model, tokenizer = load(folder, dtype=torch.bfloat16)
    assert model.get_output_embeddings().weight.shape == (512, 128)
    assert model.get_output_embeddings().weight is not model.get_input_embeddings().weight
    assert len(tokenizer) < 512
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    shapes.build(shape, folder, "cpu", torch.bfloat16)
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_numbers_that_were_not_measured_are_dashes(capsys):
    run = {"seconds": {"rollout": 1.0, "training": 2.0, "weight sync": 0.5}, "step_seconds": 3.5}
    run |= {"tokens_per_second_per_gpu": 12_345.6, "share_of_peak": 0.25}
    found = {"predicted": run | {"memory_gib": 40.0}, "measured": run | {"memory_gib": {}}}
    hour.show({"small": {"verdict": "ok", "found": found}}, Console(width=100))
    said = capsys.readouterr().out
    assert "12,346 / 12,346" in said
    assert "40 / –" in said
