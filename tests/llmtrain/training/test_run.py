"""The folder of a run: which one is trained in, by whom, what is replaced there, and how a run is left early."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import faulty_rank
import pytest
import torch
import yaml
from same_runs import same
from tests.ranks import start

from entrostat.out_folder import LOCK
from entrostat.plain_yaml import dump_yaml
from entrostat.runlog import read_metrics
from llmtrain.cli import main
from llmtrain.commands import demo
from llmtrain.commands.eval import locate, parser
from llmtrain.commands.train import REPLACED
from llmtrain.policy.checkpoint import checkpoints, latest, load_state, put, step_of, strays
from llmtrain.process.family import family, left_of
from llmtrain.process.local_ranks import free_port
from llmtrain.process.ranks import Ranks
from llmtrain.process.stop_signals import STOPPING
from llmtrain.settings.config import CheckpointConfig, EngineConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training.run import STOPPED, claim, run_config, train_rank, train_run
from llmtrain.training.trainer import Trainer, TrainingStoppedError


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != LOCK}


@pytest.fixture(scope="module")
def finished(small, tmp_path_factory) -> Path:
    """The folder of a run of two steps; not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    Trainer(replace(small, out=str(out), steps=2, eval=replace(small.eval, every=0)), small.model.path).run()
    return out


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of it, whose config.yaml still names the other folder."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


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
    assert capsys.readouterr().err == f"error: --steps {steps}: {run} has done 2; give 2 or more\n"
    assert contents(run) == before


@pytest.mark.parametrize("settings", ["", "{}\n", "# steps: 3\n"])
def test_a_run_without_settings_is_not_resumed_with_others(run, settings, capsys):
    (run / "config.yaml").write_text(settings)
    before = contents(run)
    assert main(["resume", str(run)]) == 2
    assert capsys.readouterr().err == f"error: {run / 'config.yaml'} is empty: put back the settings of the run\n"
    assert contents(run) == before


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("state.tensors", 0.9),
        ("state.json", 0),
        ("model.safetensors", 0.9),
        ("model.safetensors", None),
        ("config.json", 0.9),
        ("tokenizer.json", None),
        ("checksums.json", None),
        ("checksums.json", 0.5),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before(run, name, kept, capsys):
    for step, fix in ((2, "remove it to go on from step-000001"), (1, "no other is left: start the run anew")):
        file = run / "checkpoints" / f"step-{step:06d}" / name
        if kept is None:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
        assert main(["resume", str(run), "--steps", "3"]) == 2
        assert (
            capsys.readouterr().err
            == f"error: {file.parent} is damaged: {name} is missing or not as it was written; {fix}\n"
        )
        shutil.rmtree(file.parent)


@pytest.mark.parametrize("name", ["model.safetensors", "state.tensors", "state.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", ["flip", "zeros"])
def test_bytes_that_changed_are_noticed(run, name, damage, capsys):
    file = latest(run) / name
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64) if damage == "zeros" else bytes([content[middle] ^ 1])
    file.write_bytes(content)
    assert main(["resume", str(run), "--steps", "3"]) == 2
    said = f"{name} is missing or not as it was written; remove it to go on from step-000001"
    assert capsys.readouterr().err == f"error: {latest(run)} is damaged: {said}\n"
    assert main(["eval", str(run)]) == 2
    assert f"{name} is missing or not as it was written" in capsys.readouterr().err


def as_of_old(checkpoint: Path) -> Path:
    """Write the state of a checkpoint as earlier versions did, and return its file."""
    torch.save(load_state(checkpoint), checkpoint / "state.pt")
    for name in ("checksums.json", "state.json", "state.tensors"):
        (checkpoint / name).unlink()
    return checkpoint / "state.pt"


def test_a_checkpoint_of_an_earlier_version_is_resumed(run):
    before = load_state(latest(run))
    as_of_old(latest(run))
    assert same(load_state(latest(run)), before)
    assert main(["resume", str(run), "--steps", "3"]) == 0
    assert latest(run).name == "step-000003"


def test_a_damaged_pickle_of_an_earlier_version_is_named(run, capsys):
    file = as_of_old(latest(run))
    whole, spots = file.read_bytes(), range(0, 2000, 97)
    for spot in spots:
        file.write_bytes(whole[:spot] + bytes([whole[spot] ^ 0x55]) + whole[spot + 1 :])
        try:
            load_state(file.parent)
        except ValueError as error:
            assert str(error).startswith(f"{file.parent} is damaged: state.pt")  # noqa: PT017 (some are not noticed)


def test_resuming_a_finished_run_leaves_its_checkpoint_alone(run):
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("save_every: 1", "save_every: 3"))
    before = {path: path.stat().st_mtime_ns for path in (run / "checkpoints").rglob("*")}
    assert main(["resume", str(run)]) == 0
    assert {path: path.stat().st_mtime_ns for path in (run / "checkpoints").rglob("*")} == before


def test_a_checkpoint_that_is_replaced_moves_aside_first(tmp_path, monkeypatch):
    part, path = tmp_path / "step-000001.part", tmp_path / "step-000001"
    for folder in (part, path):
        folder.mkdir()
        (folder / "who").write_text(folder.name)
    removed = []
    monkeypatch.setattr("llmtrain.policy.checkpoint.shutil.rmtree", lambda path, **_: removed.append(path))
    put(part, path)
    assert (path / "who").read_text() == part.name
    assert (tmp_path / "step-000001.old" / "who").read_text() == path.name
    assert removed == [tmp_path / "step-000001.old"]


def test_checkpoints_are_ordered_by_number_and_strays_ignored(run, capsys):
    folder = run / "checkpoints"
    names = ["step-000001", "step-000002", "step-999960", "step-1000000"]
    for name in names[2:]:
        shutil.copytree(folder / "step-000001", folder / name)
    (folder / "step-foo").mkdir()
    (folder / "notes.txt").write_text("")
    (folder / "step-000003.part").mkdir()
    assert [path.name for path in checkpoints(run)] == names
    assert strays(run) == ["notes.txt", "step-foo"]
    for name in names[2:]:
        shutil.rmtree(folder / name)
    assert main(["resume", str(run), "--steps", "3"]) == 0
    assert f"ignored: {folder / 'step-foo'} is not a checkpoint\n" in capsys.readouterr().out
    assert latest(run).name == "step-000003"


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
    ("was", "now", "said"),
    [
        ("nproc: 1", "nproc: 2", "the torch engine is one process, not 2: use --engine.name deepspeed"),
        ("device: cpu", "device: tpu", "device must be one of cpu, cuda; got 'tpu'"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_a_run_goes_on(run, was, now, said, capsys):
    settings = run / "config.yaml"
    settings.write_text(settings.read_text().replace(f"{was}\n", f"{now}\n"))
    assert main(["resume", str(run), "--steps", "3"]) == 2
    assert capsys.readouterr() == ("", f"error: {said}\n")


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
    error = capsys.readouterr().err
    assert error == (
        f"error: {tmp_path} contains {name}: choose another --out, pass --overwrite, or use llmtrain resume\n"
    )
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
    said = f"{first}, which this command did not write and will not remove: choose another --out, or move it away\n"
    assert capsys.readouterr().err.endswith(said)
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


HOLDER = """
import os, sys, time
from llmtrain.training.run import claim
with claim(sys.argv[1]):
    child = os.fork()
    if child:
        print(child, flush=True)
    time.sleep(300)
"""


def test_a_folder_has_one_process_and_is_free_when_it_dies(small, run, capsys):
    """Whatever it has forked."""
    before = contents(run)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(run)], stdout=subprocess.PIPE, text=True)
    child = int(holder.stdout.readline())
    try:
        model = ["--out", str(run), "--overwrite", "--model.path", small.model.path]
        for args in (["resume", str(run)], ["train", *model], ["sft", *model]):
            assert main(args) == 2
            assert capsys.readouterr().err == f"error: another process trains in {run}\n"
        assert contents(run) == before
        holder.kill()
        holder.wait()
        os.kill(child, 0)  # it lives
        with claim(str(run)):
            pass
    finally:
        holder.kill()
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_help_of_the_demo_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        demo.main(["--help"])
    assert left.value.code == 0
    assert "demo" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_demo_leaves_alone_what_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, "runs/demo/thermostat"], stdout=subprocess.PIPE, text=True)
    child = int(holder.stdout.readline())
    try:
        assert main(["demo"]) == 2
    finally:
        holder.kill()
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()
    assert capsys.readouterr().err == "error: another process trains in runs/demo/thermostat\n"
    assert {path.name for path in Path("runs/demo").glob("*/*")} == {LOCK}


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


class Saves(Trainer):
    """Remembers the steps at which it was saved."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.saved = []

    def save(self):
        self.saved.append(self.step)
        return super().save()


@pytest.mark.parametrize(("every", "saved"), [(2, [2, 4]), (3, [3, 4]), (9, [4])])
def test_a_step_is_saved_once(small, tmp_path, every, saved):
    eval = replace(small.eval, every=0)
    trainer = Saves(replace(small, out=str(tmp_path / "run"), save_every=every, eval=eval), small.model.path)
    trainer.run()
    assert trainer.saved == saved


def test_the_best_checkpoint_is_kept_and_evaluated(small, tmp_path):
    eval, kept = replace(small.eval, every=1), CheckpointConfig(keep_last=1, keep_best="eval/avg@2")
    config = replace(small, out=str(tmp_path / "run"), steps=3, eval=eval, checkpoint=kept)
    Trainer(config, small.model.path).run()
    scores = {line["step"]: line["eval/avg@2"] for line in read_metrics(config.out)}
    top = max((scores[step], step) for step in (1, 2))[1]  # at step 3 the newest is kept anyway
    assert [step_of(path) for path in checkpoints(config.out)] == [top, 3]
    first = max((scores[step], step) for step in (top, 3))[1]
    for flags in (["--best"], ["--best", "eval/avg@2"]):
        assert step_of(locate(parser().parse_args([config.out, *flags])).model) == first
    with pytest.raises(ValueError, match=r"--best chooses among the checkpoints of a run"):
        locate(parser().parse_args([str(checkpoints(config.out)[0]), "--best"]))


def test_a_best_metric_that_no_evaluation_has_ends_the_run_at_once(small, tmp_path):
    config = replace(small, out=str(tmp_path / "run"), checkpoint=CheckpointConfig(keep_best="eval/avg@9"))
    with pytest.raises(TrainingStoppedError, match=r"checkpoint.keep_best eval/avg@9 is not among the metrics: eval/"):
        Trainer(config, small.model.path).run()


class Pressed(Ranks):
    """Ctrl-C has come to another rank."""

    def most(self, count):
        return 1


def test_ctrl_c_before_the_first_step_leaves_a_resumable_run(small, tmp_path):
    trainer = Saves(replace(small, out=str(tmp_path / "run")), small.model.path)
    trainer.ranks = Pressed()
    trainer.run()
    assert trainer.interrupted
    assert trainer.saved == [0]


def test_a_run_goes_on_in_another_cluster_if_it_was_in_one(run, capsys):
    assert main(["resume", str(run), "--topology.address", "auto"]) == 2
    assert capsys.readouterr().err == f"error: {run} was not trained on Ray but with topology.name local\n"
    settings = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(settings.replace("  name: local", "  name: ray"))
    assert main(["resume", str(run), "--topology.address", "127.0.0.1:1"]) == 2
    assert "error: no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err


def faulty(config, folder: Path, who: int | str, what: str, size: int) -> list[str]:
    """Script, with its arguments, of each rank of a run in which rank `who` fails at its second step."""
    config = replace(config, nproc=size, out=str(folder / "run"), engine=EngineConfig(name="deepspeed"), threads=1)
    optim = replace(config.optim, mini_batch_size=2 * size)
    rollout = replace(config.rollout, prompts=4 * size)
    (folder / "c.yaml").write_text(dump_yaml(to_dict(replace(config, optim=optim, rollout=rollout))))
    return [str(Path(__file__).parents[1] / "faulty_rank.py"), str(folder / "c.yaml"), str(who), what]


def ranks_with_a_fault(config, folder: Path, who: int | str, what: str, size: int = 2) -> tuple[list[int], list[str]]:
    """Exit codes and errors of its ranks, started without our launcher."""
    common = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "LOCAL_SIZE": size, "MASTER_ADDR": "127.0.0.1"}
    common["MASTER_PORT"] = free_port()
    _, *args = faulty(config, folder, who, what, size)
    files = [folder / f"rank-{rank}.log" for rank in range(size)]
    ranks = [
        start(faulty_rank.run, common | {"RANK": rank, "LOCAL_RANK": rank}, str(file), *args)
        for rank, file in enumerate(files)
    ]
    for process in ranks:
        process.join(120)
        process.kill()
        process.join()
    return [process.exitcode for process in ranks], [file.read_text() for file in files]


def said_in_time(process: subprocess.Popen, seconds: float) -> str:
    """Errors of a rank, which is killed if it does not end in time."""
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return f"NOT DONE after {seconds:g} s: {process.communicate()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "what", "words"),
    [
        (1, "memory", "error: step 1: out of memory in phase 'other': "),
        pytest.param(
            *(1, "rollout", "error: step 1: rollout engine vllm could not answer; last checkpoint: "),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *(1, "backend", "error: another rank stopped: NCCL error: out of memory; last checkpoint: "),
            marks=pytest.mark.long,
        ),
        pytest.param(0, "bug", "KeyError: 'a bug'", marks=pytest.mark.long),
    ],
)
def test_one_rank_that_fails_ends_all_and_says_why(small, tmp_path, who, what, words):
    """The other one waits for it in a collective; it ends as well, and adds nothing."""
    codes, said = ranks_with_a_fault(small, tmp_path, who, what)
    assert codes == [1, 1], said
    assert words in said[who]
    assert "Error" not in said[1 - who]
    assert "error" not in said[1 - who]


@pytest.mark.long
def test_what_all_ranks_refuse_is_said_once(small, tmp_path):
    codes, said = ranks_with_a_fault(small, tmp_path, "all", "refused")
    assert sorted(codes) == [1, 2]
    assert [line for text in said for line in text.splitlines() if "error" in line] == ["error: this cannot be"]


@pytest.mark.slow
def test_a_rank_that_is_killed_is_noticed_once(small, tmp_path):
    codes, said = ranks_with_a_fault(small, tmp_path, 2, "killed", size=3)
    assert codes == [1, 1, -9]
    (line,) = (line for text in said for line in text.splitlines() if line.startswith("error: "))
    assert line.startswith("error: another rank stopped: ")
    assert "last checkpoint: " in line


@pytest.mark.long
def test_under_torchrun_its_report_names_the_rank_that_was_killed(small, tmp_path):
    """The survivors, of which none knows it, are stopped."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "--master-port"]
    command = [*torchrun, str(free_port()), *faulty(small, tmp_path, 2, "killed", size=3)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said, known = said_and_family(process, 120)
    assert process.returncode == 1, said
    assert re.search(r"rank +: 2 \(local_rank: 2\)\n +exitcode +: -9 ", said), said
    assert len(known) >= 3
    assert not left_of(known)


def said_and_family(process: subprocess.Popen, seconds: float) -> tuple[str, dict[int, str]]:
    """Errors of a process, and all processes that were seen below it."""
    known: dict[int, str] = {}
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(said_in_time, process, seconds)
        while not said.done():
            known |= family(process.pid)
            time.sleep(0.1)
    return said.result(), known
