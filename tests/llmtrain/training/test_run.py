"""The folder of a run: which one is trained in, by whom, what is replaced there, and how a run is left early."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml
from holder import held

from entrostat.logs.runlog import read_metrics
from entrostat.settings.out_folder import LOCK
from llmtrain.cli import main
from llmtrain.commands.train import REPLACED
from llmtrain.policy.checkpoint import latest
from llmtrain.process.ranks import Ranks
from llmtrain.process.stop_signals import STOPPING
from llmtrain.settings.nested import to_dict
from llmtrain.training.run import STOPPED, claim, run_config, train_rank, train_run
from llmtrain.training.trainer import Trainer


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != LOCK}


def test_the_folder_that_is_named_is_resumed(finished, run, tmp_path, monkeypatch, capsys):
    before = contents(finished)
    monkeypatch.chdir(tmp_path)
    assert main(["resume", "run/", "--steps", "3"]) == 0
    assert capsys.readouterr().out.endswith("done: run\n")
    assert contents(finished) == before
    assert [line["step"] for line in read_metrics(run)] == [0, 1, 2]
    assert latest(run).name == "step-000003"
    assert yaml.safe_load((run / "config.yaml").read_text())["out"] == "run"


@pytest.mark.parametrize("steps", ["1", "0", "-1"])
def test_a_run_is_not_resumed_to_a_step_that_is_over(run, steps, capsys):
    before = contents(run)
    assert main(["resume", str(run), "--steps", steps]) == 2
    assert f"--steps {steps}: {run} has done 2" in capsys.readouterr().err
    assert contents(run) == before


@pytest.mark.parametrize("settings", ["", "{}\n", "# steps: 3\n"])
def test_a_run_without_settings_is_not_resumed_with_others(run, settings, capsys):
    (run / "config.yaml").write_text(settings)
    before = contents(run)
    assert main(["resume", str(run)]) == 2
    assert f"{run / 'config.yaml'} is empty" in capsys.readouterr().err
    assert contents(run) == before


class Signalled(Trainer):
    """Sends itself a signal in its second step."""

    number = signal.SIGTERM

    def _train_step(self):
        if self.step == 1:
            os.kill(os.getpid(), self.number)
        return super()._train_step()


@pytest.fixture
def not_under_nohup():
    """Default handling of SIGHUP, which tests under nohup, and what they start, would ignore."""
    was = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, was)


@pytest.mark.usefixtures("not_under_nohup")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_stops_after_the_step_with_a_checkpoint(small, tmp_path, monkeypatch, number, code):
    monkeypatch.setattr(Signalled, "number", number)
    monkeypatch.setattr("llmtrain.training.trainer.Trainer", Signalled)
    handlers = {n: signal.getsignal(n) for n in STOPPING}
    config = replace(small, out=str(tmp_path / "run"), steps=4, save_every=4, eval=replace(small.eval, every=0))
    said = f"stopped after step 2; continue with: llmtrain resume {config.out}"
    assert train_rank(config, resuming=False) == (code, said)
    assert latest(config.out).name == "step-000002"
    assert {n: signal.getsignal(n) for n in STOPPING} == handlers


SIGNALS = """
import os, signal
from llmtrain.process.stop_signals import StopSignal
stop = StopSignal()
stop.heed()
os.kill(os.getpid(), signal.{0})
assert stop.number == signal.{0}
os.kill(os.getpid(), signal.{0})
print("still here")
"""


@pytest.mark.usefixtures("not_under_nohup")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_the_second_signal_ends_at_once(name):
    done = subprocess.run([sys.executable, "-c", SIGNALS.format(name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-getattr(signal, name), "")


@pytest.mark.parametrize(
    ("was", "now", "names"),
    [("nproc: 1", "nproc: 2", "--engine.name deepspeed"), ("device: cpu", "device: tpu", "'tpu'")],
)
def test_settings_that_cannot_be_are_refused_before_a_run_goes_on(run, was, now, names, capsys):
    settings = run / "config.yaml"
    settings.write_text(settings.read_text().replace(f"{was}\n", f"{now}\n"))
    assert main(["resume", str(run), "--steps", "3"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert names in err


def test_ranks_say_nothing_of_a_run_that_the_first_refuses(run, monkeypatch, capsys):
    class Lost(Ranks):
        def barrier(self):
            raise ConnectionError("Connection closed by peer")

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr("llmtrain.process.ranks.join", lambda device, timeout: Lost())
    monkeypatch.setattr("llmtrain.process.ranks.is_of_another", lambda error: True)
    (run / STOPPED).touch()  # which the first rank has left
    assert train_run(replace(run_config(run), out=str(run)), resuming=True) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", REPLACED)
def test_nothing_is_replaced_by_accident(small, tmp_path, name, capsys):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("")
    assert main(["train", "--out", str(tmp_path), "--model.path", small.model.path]) == 2
    assert f"{tmp_path} contains {name}: " in capsys.readouterr().err
    assert [p.relative_to(tmp_path) for p in tmp_path.rglob("*")] == [Path(name), Path(name, "mine")]


@pytest.mark.parametrize(
    ("command", "name"), [("sft", "notes.txt"), ("train", "checkpoints/notes.txt"), ("train", "tensorboard/notes.txt")]
)
def test_overwrite_removes_nothing_that_the_command_did_not_write(small, tmp_path, command, name, capsys):
    out = tmp_path / "out"
    for path in (out / name, out / "checkpoints" / "step-000001" / "state.pt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before = contents(out)
    assert main([command, "--out", str(out), "--overwrite", "--model.path", small.model.path, "--steps", "1"]) == 2
    first = "checkpoints" if command == "sft" else Path(name).name
    assert f"{first}, which this command did not write" in capsys.readouterr().err
    assert {name: content for name, content in contents(out).items() if name != STOPPED} == before


def test_a_warm_up_replaces_what_a_warm_up_wrote(small, tmp_path):
    out = tmp_path / "out"
    given = ["sft", "--out", str(out), "--model.path", small.model.path, "--sft.steps", "0"]
    assert main(given) == 0
    assert main([*given, "--overwrite"]) == 0
    (out / "mine.txt").write_text("")
    assert main([*given, "--overwrite"]) == 2
    assert (out / "model.safetensors").is_file()


@pytest.mark.parametrize("command", ["train", "sft"])
@pytest.mark.parametrize("out", ["file", "file/run"])
def test_a_folder_that_cannot_be(small, tmp_path, command, out, capsys):
    (tmp_path / "file").write_text("")
    assert main([command, "--out", str(tmp_path / out), "--model.path", small.model.path]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"error: cannot write to {tmp_path / out}: ")
    assert said.err.count("\n") == 1
    assert not said.out, "the warm-up has not begun"


def test_a_folder_has_one_process_and_is_free_when_it_dies(small, run, capsys):
    """Whatever it has forked."""
    before = contents(run)
    model = ["--out", str(run), "--overwrite", "--model.path", small.model.path]
    with held(run) as (process, child):
        for args in (["resume", str(run)], ["train", *model], ["sft", *model]):
            assert main(args) == 2
            assert capsys.readouterr().err == f"error: another process trains in {run}\n"
        assert contents(run) == before
        process.kill()
        process.wait()
        os.kill(child, 0)  # it lives
        with claim(str(run)):
            pass


def test_ranks_but_the_first_leave_the_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with claim(str(tmp_path / "run")):
        assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", pytest.param("sft", marks=pytest.mark.long)])
def test_ctrl_c_in_the_warm_up(small, tmp_path, command, monkeypatch, capsys):
    """The folder is held by then; afterwards nothing is in the way of the same command."""
    model = replace(small.model, path=None, hidden_size=32, num_layers=2, num_heads=2)
    config = replace(small, out=str(tmp_path / "run"), model=model, sft=replace(small.sft, steps=10**6), threads=1)
    file, log = tmp_path / "config.yaml", tmp_path / "log"
    file.write_text(yaml.safe_dump(to_dict(config)))
    args = [command, "--config", str(file)]
    monkeypatch.chdir(tmp_path)
    with log.open("w") as out:
        line = [sys.executable, "-m", "llmtrain", *args]
        heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
        process = subprocess.Popen(line, stdout=out, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    try:
        while "warm-up 1/" not in log.read_text():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        assert main(args) == 2
        assert capsys.readouterr().err == f"error: another process trains in {config.out}\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == "stopped\n"
    finally:
        process.kill()
    assert process.returncode == 130
    assert [path.name for path in Path(config.out).iterdir()] == [LOCK]
    file.write_text(yaml.safe_dump(to_dict(replace(config, sft=replace(small.sft, steps=1), steps=1))))
    assert main(args) == 0


def test_a_run_goes_on_in_another_cluster_if_it_was_in_one(run, capsys):
    assert main(["resume", str(run), "--topology.address", "auto"]) == 2
    assert f"{run} was not trained on Ray" in capsys.readouterr().err
    settings = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(settings.replace("  name: local", "  name: ray"))
    assert main(["resume", str(run), "--topology.address", "127.0.0.1:1"]) == 2
    assert "127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("not_under_nohup")
@pytest.mark.parametrize(("ranks", "name", "code"), [(1, "SIGHUP", 129), (2, "SIGTERM", 143)])
def test_a_signal_before_the_first_step_is_said_and_has_its_code(tmp_path, name, code, ranks):
    engine = ["--engine.name", "deepspeed", "--nproc", "2"] if ranks == 2 else []
    flags = ["--preset", "countdown-cpu", "--threads", "1", "--sft.steps", "100000", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "llmtrain", "train", *flags, *engine]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        for line in process.stdout:
            if line.startswith("warm-up"):
                break
        process.send_signal(getattr(signal, name))
        _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"stopped by {name}, " in said.splitlines()[-1]
