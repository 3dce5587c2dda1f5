"""Whole runs as actors of a real Ray cluster: those of one process, faults included."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from mortal import mortal
from same_runs import without_times
from told_exit_codes import kernel_tells

pytest.importorskip("ray")

import psutil
import ray

from entrostat.logs.runlog import read_lines, read_metrics
from llmtrain.cli import main
from llmtrain.cluster import topology
from llmtrain.cluster.learner_actor import Learner
from llmtrain.cluster.topology import CRASHED, follow
from llmtrain.policy.checkpoint import checkpoints, latest
from llmtrain.process.exit_code import exit_codes
from llmtrain.process.family import family, left_of
from llmtrain.process.local_ranks import LostRankError
from llmtrain.settings.config import EngineConfig, ModelConfig, TopologyConfig, TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.settings.presets import get_preset
from llmtrain.training.trainer import Trainer

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture(scope="module")
def here():
    """A Ray for all runs of this module."""
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray.init("local", include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def learns(small):
    """A run in which every step has a gradient, whatever the rewards."""
    return replace(small, steps=3, controller="entropy_bonus+steer", threads=1)


def on_ray(config, out, **changes):
    return replace(config, out=str(out), topology=TopologyConfig(name="ray", **changes))


def file_of(config) -> str:
    file = Path(config.out).with_suffix(".yaml")
    file.write_text(yaml.safe_dump(to_dict(config)))
    return str(file)


def train(config) -> int:
    return main(["train", "--config", file_of(config)])


def processes(name: str, of: int | None = None) -> list[psutil.Process]:
    """Processes below `of`, or this one, whose title has the name; Ray's are titled by the actor's class."""
    found = []
    for process in psutil.Process(of).children(recursive=True):
        with suppress(psutil.Error):  # gone, or a zombie
            found += [process] if name in " ".join(process.cmdline()) else []
    return found


def end_of(name: str) -> bool:
    """Return True if no such process is left within a minute: Ray's have little of a busy processor."""
    end = time.monotonic() + 60
    while processes(name) and time.monotonic() < end:
        time.sleep(0.05)
    return not processes(name)


def all_end(known: dict[int, str]) -> bool:
    """Return True if all processes of a family end within a minute."""
    end = time.monotonic() + 60
    while left_of(known) and time.monotonic() < end:
        time.sleep(0.05)
    return not left_of(known)


# Runs -----------------------------------------------------------------------------------------------------------------


def test_a_run_on_two_ranks_is_that_of_one_process(here, learns, tmp_path, capsys):
    """DeepSpeed on two learners, one rollout engine: every metric of three steps, evaluations too.

    `remax`: greedy responses are shared out over the ranks as the sampled ones are.
    """
    learns = replace(learns, advantage="remax")
    Trainer(replace(learns, out=str(tmp_path / "local")), learns.model.path).run()
    config = replace(learns, nproc=2, engine=EngineConfig(name="deepspeed", zero_stage=2))
    assert train(on_ray(config, tmp_path / "ray")) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"done: {tmp_path / 'ray'}\n")
    assert "step 3/3  H " in out
    local, remote = without_times(tmp_path / "local"), without_times(tmp_path / "ray")
    assert [line["step"] for line in remote] == [0, 1, 2, 3]
    assert all(line["grad_norm"] > 0 for line in local[:3])
    assert all("reward/greedy" in line for line in local[:3])
    for a, b in zip(local, remote, strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert b[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key
    assert len(read_lines(tmp_path / "ray" / "samples.jsonl")) == 3
    assert end_of("ray::Learner")
    assert end_of("ray::RolloutActor")


def ahead(learns, out) -> list[dict]:
    """Metrics of a run whose engines are up to two steps ahead of the weights."""
    assert train(on_ray(replace(learns, steps=4), out, staleness=2, placement="disaggregated")) == 0
    return without_times(out)


def test_asynchronous_runs_are_as_stale_as_allowed(here, learns, tmp_path):
    lines = ahead(learns, tmp_path / "run")
    assert [line["staleness/max"] for line in lines[:4]] == [0, 1, 2, 2]
    assert lines[2]["mismatch/logp_gap"] > 1e-4, "the weights have moved since"


@pytest.mark.long
def test_asynchronous_runs_repeat(here, learns, tmp_path):
    assert ahead(learns, tmp_path / "one") == ahead(learns, tmp_path / "two")


@pytest.mark.long
def test_partial_rollouts_are_those_of_one_process(here, learns, tmp_path):
    """Two learners and two engines: responses that go on change engines."""
    partial = replace(learns, rollout=replace(learns.rollout, partial_tokens=5))
    Trainer(replace(partial, out=str(tmp_path / "local")), learns.model.path).run()
    config = replace(partial, nproc=2, engine=EngineConfig(name="deepspeed", zero_stage=2))
    assert train(on_ray(config, tmp_path / "ray", rollout_engines=2)) == 0
    local, remote = without_times(tmp_path / "local"), without_times(tmp_path / "ray")
    assert local[2]["staleness/max"] > 0
    for a, b in zip(local, remote, strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert b[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key


@pytest.mark.long
def test_partial_rollouts_repeat_ahead_of_the_learners(here, learns, tmp_path):
    partial = replace(learns, steps=4, rollout=replace(learns.rollout, partial_tokens=5))
    runs = [tmp_path / "one", tmp_path / "two"]
    for run in runs:
        assert train(on_ray(partial, run, staleness=1, rollout_engines=2)) == 0
    ahead = without_times(runs[0])
    assert ahead == without_times(runs[1])
    Trainer(replace(partial, out=str(tmp_path / "local")), learns.model.path).run()
    assert ahead[3]["staleness/mean"] > without_times(tmp_path / "local")[3]["staleness/mean"]


@pytest.mark.long
def test_a_run_whose_engines_come_and_go_is_that_of_one_process(here, learns, tmp_path):
    """An elastic engine joins, is killed, and another one joins; every metric of the steps is the local run's."""
    assert end_of("ray::RolloutActor"), "of earlier tests"
    config = replace(on_ray(learns, tmp_path / "ray", elastic_engines=1), steps=2000)

    def engines() -> list[float]:
        return [line["rollout/engines"] for line in read_metrics(config.out) if "rollout/engines" in line]

    def wait_for(count: int) -> None:
        while (engines() or [0.0])[-1] != count:
            time.sleep(0.05)

    def act() -> None:
        while not (own := processes("ray::RolloutActor")):
            time.sleep(0.02)
        wait_for(2)
        (elastic,) = {*processes("ray::RolloutActor")} - {*own}
        elastic.kill()
        wait_for(1)
        wait_for(2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=act, daemon=True).start()
    assert train(config) == 130
    found = engines()
    changes = [count for i, count in enumerate(found) if not i or count != found[i - 1]]
    assert changes == [1, 2, 1, 2]
    Trainer(replace(learns, steps=len(found), out=str(tmp_path / "local")), learns.model.path).run()
    local = without_times(tmp_path / "local")
    for a, b in zip(local[: len(found)], without_times(tmp_path / "ray"), strict=False):
        for key, value in a.items():
            assert b[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key


def test_the_preset_with_vllm(here, learns, tmp_path):
    """DeepSpeed ZeRO-2 on two ranks, a vLLM engine, Countdown: three steps, whose log-probabilities agree."""
    pytest.importorskip("vllm")
    preset = get_preset("countdown-ray")
    rollout = replace(preset.rollout, prompts=8, n=4, max_new_tokens=12)
    config = replace(
        preset,
        out=str(tmp_path / "run"),
        steps=3,
        threads=1,
        model=wide(tmp_path),
        task=learns.task,
        rollout=rollout,
        optim=learns.optim,
        eval=learns.eval,
    )
    assert train(replace(config, controller=learns.controller)) == 0
    found = without_times(config.out)
    assert [line["staleness/max"] for line in found[:3]] == [0, 0, 0]
    assert found[0]["mismatch/ratio_min"] == pytest.approx(1, abs=1e-4)
    assert found[0]["mismatch/ratio_max"] == pytest.approx(1, abs=1e-4)
    assert found[2]["mismatch/logp_gap"] <= 1e-4


@pytest.mark.long
def test_an_engine_of_two_processes(here, learns, tmp_path):
    """vLLM divides the model over processes of its own; weights reach them as a file."""
    pytest.importorskip("vllm")
    config = on_ray(learns, tmp_path / "run", placement="disaggregated")
    rollout = replace(config.rollout, name="vllm", tensor_parallel_size=2, kv_cache_gib=0.25)
    evaluation = replace(config.eval, every=0)
    assert train(replace(config, steps=2, model=wide(tmp_path), rollout=rollout, eval=evaluation)) == 0
    found = without_times(config.out)
    assert [line["step"] for line in found] == [0, 1]
    for line in found:
        assert line["mismatch/ratio_min"] == pytest.approx(1, abs=1e-4)
        assert line["mismatch/ratio_max"] == pytest.approx(1, abs=1e-4)


def wide(folder: Path) -> ModelConfig:
    """A model whose heads are as wide as vLLM needs them."""
    from llmtrain.policy.model import build_tiny, save
    from llmtrain.policy.tokenizer import build_char_tokenizer
    from llmtrain.verifiers.countdown import ALPHABET

    tokenizer = build_char_tokenizer(ALPHABET)
    save(build_tiny(len(tokenizer), hidden=64, layers=2, heads=2, kv_heads=2), tokenizer, folder / "wide")
    return ModelConfig(path=str(folder / "wide"))


# Faults ---------------------------------------------------------------------------------------------------------------


def after_a_checkpoint(config, step, act) -> None:
    """Calls `act` in a thread once the run has written one of this step or later."""

    def wait() -> None:
        while not any(path.name >= f"step-{step:06d}" for path in checkpoints(config.out)):
            time.sleep(0.02)
        act()

    threading.Thread(target=wait, daemon=True).start()


def test_ctrl_c_leaves_a_run_that_can_be_resumed_and_a_lost_learner_ends_it(here, learns, tmp_path, capsys):
    config = replace(on_ray(learns, tmp_path / "run"), steps=500)
    after_a_checkpoint(config, 1, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert train(config) == 130
    out = capsys.readouterr().out
    done = int(latest(config.out).name.removeprefix("step-"))
    assert out.endswith(f"stopped after step {done}; continue with: llmtrain resume {config.out}\n")
    assert end_of("ray::RolloutActor")

    killed: list[float] = []

    def kill() -> None:
        processes("ray::Learner")[0].kill()
        killed.append(time.monotonic())

    after_a_checkpoint(config, done + 1, kill)
    assert main(["resume", config.out]) == 2
    took = time.monotonic() - killed[0]
    steps = [line["step"] for line in read_metrics(config.out)]
    assert steps == list(range(len(steps)))
    assert steps[-1] >= done
    error = capsys.readouterr().err.splitlines()[-1]
    cause = "killed by SIGKILL" if kernel_tells() else CRASHED
    assert error == f"error: rank 0 was lost: {cause}; last checkpoint: {latest(config.out)}"
    assert end_of("ray::RolloutActor"), "engines end with the learner who started them"
    print(f"named and ended after {took:.1f} s")


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "cause"),
    [(-11, "killed by SIGSEGV"), pytest.param(1, "it ended with exit code 1", marks=pytest.mark.long)],
)
def test_a_learner_that_dies_in_its_backward_pass_is_named(learns, tmp_path, code, cause):
    """The other one waits for it, and fails first; on a Ray of its own."""
    config = on_ray(replace(learns, controller="entropy_bonus+mortal:Mortal"), tmp_path / "run")
    config = replace(config, steps=500, nproc=2, engine=EngineConfig(name="deepspeed", zero_stage=2))
    command = [sys.executable, "-m", "llmtrain", "train", "--config", file_of(config)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=os.environ | mortal(code), **pipes)
    while not checkpoints(config.out):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    known, learners = family(process.pid), processes("ray::Learner", process.pid)
    assert len(learners) == 2
    while all(learner.is_running() for learner in learners):
        time.sleep(0.02)
    began = time.monotonic()
    _, errors = process.communicate(timeout=60)
    print(f"named and ended after {time.monotonic() - began:.1f} s")
    assert process.returncode == 2
    cause = cause if kernel_tells() else CRASHED
    assert errors.splitlines()[-1] == f"error: rank 1 was lost: {cause}; last checkpoint: {latest(config.out)}"
    assert all_end(known)


@pytest.mark.parametrize(
    ("error", "trained", "raised"),
    [
        (None, False, None),
        (None, True, ray.exceptions.TaskCancelledError),
        (OSError("No space left on device"), False, OSError),
    ],
)
def test_only_ctrl_c_before_the_first_step_stops_there(here, error, trained, raised):
    class Waits(Learner):
        """Does nothing until Ctrl-C, and then fails."""

        def train(self):
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            try:
                while True:
                    time.sleep(0.01)
            except KeyboardInterrupt:
                raise error or KeyboardInterrupt from None

    pressed = []

    def look():
        if not pressed:
            pressed.append(os.kill(os.getpid(), signal.SIGINT))
        return trained

    learner = ray.remote(Waits).options(num_cpus=0).remote()
    place = ray.get(learner.settle.remote(os.getcwd()))
    with pytest.raises(raised) if raised else nullcontext():
        assert follow([learner.train.remote()], place, look) == (130, "stopped before the first step was trained")
    ray.kill(learner)


def test_a_learner_that_stops_is_heard_though_another_waits_for_it(here, monkeypatch):
    class Stops(Learner):
        def stop(self):
            return 1, "error: step 3: out of memory"

        def wait(self):
            time.sleep(60)

    monkeypatch.setattr(topology, "GRACE", 1.0)
    learners = [ray.remote(Stops).options(num_cpus=0).remote() for _ in range(2)]
    place = ray.get(learners[0].settle.remote(os.getcwd()))
    runs = [learners[0].wait.remote(), learners[1].stop.remote()]
    assert follow(runs, place, lambda: True) == (1, "error: step 3: out of memory")
    for learner in learners:
        ray.kill(learner)


@pytest.mark.long
def test_a_learner_that_is_lost_is_named_though_another_stops_because_of_it(here):
    class Ends(Learner):
        def stop(self):
            return 1, "error: step 3: rollout engine 0 crashed"

        def die(self):
            time.sleep(0.5)
            os._exit(7)

    learners = [ray.remote(Ends).options(num_cpus=0).remote() for _ in range(2)]
    places = ray.get([learner.settle.remote(os.getcwd()) for learner in learners])
    runs = [learners[0].stop.remote(), learners[1].die.remote()]
    ended = "it ended with exit code 7" if kernel_tells() else CRASHED
    with exit_codes({1: places[1].pid}) as code_of, pytest.raises(LostRankError, match=f"^rank 1 was lost: {ended}$"):
        follow(runs, places[0], lambda: True, code_of)
    ray.kill(learners[0])


@pytest.mark.long
@pytest.mark.parametrize("way", ["hung engine", "SIGTERM"])
def test_how_a_run_is_ended_and_nothing_is_left(learns, tmp_path, way):
    """On a Ray of its own, all of whose ports are bound to loopback."""
    config = on_ray(learns, tmp_path / "run")
    config = replace(config, steps=500, rollout=replace(config.rollout, timeout=2.0))
    command = [sys.executable, "-m", "llmtrain", "train", "--config", file_of(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not checkpoints(config.out):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    known, children = family(process.pid), psutil.Process(process.pid).children(recursive=True)
    listening = [x for p in children for x in p.net_connections("tcp") if x.status == psutil.CONN_LISTEN]
    assert listening
    assert {x.laddr.ip.removeprefix("::ffff:") for x in listening} == {"127.0.0.1"}
    began = time.monotonic()
    if way == "SIGTERM":
        process.terminate()
    else:
        processes("ray::RolloutActor", process.pid)[0].suspend()
    _, errors = process.communicate(timeout=60)
    print(f"ended after {time.monotonic() - began:.1f} s")
    code, name = {"hung engine": (1, "rollout engine 0 hangs: "), "SIGTERM": (2, "SIGTERM; ")}[way]
    assert process.returncode == code
    assert name in errors.splitlines()[-1]
    assert "last checkpoint:" in errors.splitlines()[-1]
    assert all_end(known)


@pytest.mark.parametrize("when", ["while Ray starts", "once it is up"])
def test_sigterm_before_there_are_learners(monkeypatch, when):
    """Ray's own answer to it, which ray.init puts in place, says nothing."""
    before, answered = signal.getsignal(signal.SIGTERM), []

    def init(**settings):
        signal.signal(signal.SIGTERM, lambda number, frame: answered.append(number) or sys.exit(15))
        if when == "while Ray starts":
            os.kill(os.getpid(), signal.SIGTERM)

    @contextmanager
    def placement(config):
        os.kill(os.getpid(), signal.SIGTERM)
        yield

    for name, stand_in in {"is_initialized": lambda: False, "init": init, "shutdown": lambda: None}.items():
        monkeypatch.setattr(ray, name, stand_in)
    monkeypatch.setattr(topology, "placement", placement)
    with pytest.raises(LostRankError, match="the run was stopped by SIGTERM"):
        topology.train_on_ray(TrainConfig(topology=TopologyConfig(name="ray")))
    assert bool(answered) == (when == "while Ray starts")
    assert signal.getsignal(signal.SIGTERM) == before
