"""Weights from GPU to GPU or within one: all of the way but NCCL and CUDA, and all ways in which an engine can fail."""

import copy
import json
import os
import signal
from functools import partial

import pytest
import torch

pytest.importorskip("vllm", reason="make install")

import ipc_ranks
import ray
import ray_engines
import without_gpus
from ray_engines import Scripted
from tests.ranks import group, run_ranks
from vllm_answers import CONFIG, EOS, PROMPTS, TOKENIZER, forced_logp, sharp_model

from llmtrain.cluster.topology import cluster
from llmtrain.policy.model import save
from llmtrain.process.ranks import Ranks
from llmtrain.rollout.ray.direct_weights import Direct
from llmtrain.rollout.ray.places import Seat
from llmtrain.rollout.ray.remote_engine import RemoteEngine
from llmtrain.rollout.rollout_engine import Request, RolloutError
from llmtrain.settings.config import RolloutConfig
from llmtrain.settings.sampling import Sampling

pytestmark = pytest.mark.slow

for module in (ray_engines, without_gpus):
    ray.cloudpickle.register_pickle_by_value(module)  # Ray's processes cannot import tests
QUICK = RolloutConfig(max_new_tokens=4, timeout=2.0)
IDS = TOKENIZER(PROMPTS)["input_ids"]


@pytest.fixture(scope="module")
def here():
    with cluster(""):
        yield


@pytest.fixture(autouse=True)
def place(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")


class Several(Ranks):
    """The first of three ranks, who sees what the others are told."""

    size = 3

    def deal(self, parts):
        self.dealt = parts
        return parts[0]


def remote(make, config, count=2):
    seats = [Seat({"num_cpus": 0.1}, {"OMP_NUM_THREADS": "1"})] * count
    return RemoteEngine(make, config, Several(), seats, direct=Direct("nccl", torch.float32, "cpu"))


def test_two_engines_take_what_was_broadcast(here, tmp_path, monkeypatch):
    """Twice, while the first answer has not been waited for; then a bit changes on the way to the second engine."""
    without_gpus.install_nccl(monkeypatch.setattr)
    models = [sharp_model() for _ in range(3)]
    for scale, model in zip((1.0, 0.8, 1.2), models, strict=True):
        model.requires_grad_(False)
        for parameter in model.parameters():
            parameter.mul_(scale)
    save(models[0], TOKENIZER, tmp_path / "model")
    engine = remote(partial(without_gpus.start, tmp_path / "model", CONFIG, [EOS]), CONFIG)
    request = Request(IDS, Sampling(samples=4, max_new_tokens=4), [list(range(len(IDS))), [], []], 0)
    pending = []
    for version, model in enumerate(models):
        if version:
            engine.update(list(model.named_parameters()), version)
        pending.append(engine.submit(request))
    for version, answer in enumerate(pending):
        answer()
        rollouts = engine.ranks.dealt[0]
        assert set(rollouts.version.tolist()) == {version}
        torch.testing.assert_close(rollouts.logp, forced_logp(models[version], rollouts), atol=1e-4, rtol=0)
        assert not torch.allclose(rollouts.logp, forced_logp(models[version - 1], rollouts), atol=1e-2)

    ray.get(engine.engines[1].actor.__ray_call__.remote(without_gpus.spoil))
    with pytest.raises(RolloutError, match=r"rollout engine 1 .*weights 3: 1 of \d+ tensors .*worker 0"):
        engine.update(list(copy.deepcopy(models[0]).named_parameters()), 3)
    engine.close()


WEIGHTS = [("w", torch.ones(3))]


def alone(info):
    return without_gpus.Alone()


def answering(info):
    """A communicator whose workers need nothing."""
    found = without_gpus.Alone()
    found.broadcast = lambda tensor, src, stream=None: None
    return found


@pytest.mark.parametrize(
    ("call", "fault", "names"),
    [
        pytest.param("init_weight_transfer_engine", "raise", "engine 0 .*disk full", marks=pytest.mark.long),
        pytest.param("start_weight_update", "die", "engine 0 crashed", marks=pytest.mark.long),
        pytest.param("update_weights", "raise", "engine 0 .*disk full", marks=pytest.mark.long),
        ("update_weights", "die", "engine 0 crashed"),
        pytest.param("update_weights", "stop", "engine 0 .*no weights .*timeout 2 s", marks=pytest.mark.long),
        pytest.param("finish_weight_update", "stop", "engine 0 .*no weights .*timeout 2 s", marks=pytest.mark.long),
        pytest.param("accept", "stale", "engine 0 .*weights 0 instead of 1", marks=pytest.mark.long),
        ("", "", "weights 1 .*timeout 2 s"),
    ],
)
def test_an_engine_that_is_lost_meanwhile_is_an_error_in_time(here, monkeypatch, call, fault, names):
    """Where workers are lost in the midst of a broadcast, or never come, the trainer's end of it waits for ever."""
    without_gpus.install_nccl(monkeypatch.setattr, alone if call in ("", "update_weights") else answering)
    engine = remote(partial(Scripted, {call: fault}), QUICK, count=1)
    engine.engines[0].wait_for_start()
    with pytest.raises(RolloutError, match=names):
        engine.update(WEIGHTS, 1)
    engine.close()


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGKILL, "rollout engine 1 crashed"),
        pytest.param(
            *(signal.SIGSTOP, "rollout engine 1 hangs: it gave no answer within rollout.timeout 2 s"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_an_engine_that_was_lost_before_is_an_error_on_all_ranks(here, number, message):
    """Before any of them reads weights, which is a collective that the others could not leave."""
    engine = remote(Scripted, QUICK)
    for each in engine.engines:
        each.wait_for_start()
    os.kill(ray.get(engine.engines[1].actor.__ray_call__.remote(lambda self: os.getpid())), number)
    with pytest.raises(RolloutError) as raised:
        engine.update(WEIGHTS, 1)
    assert [str(error) for error in (raised.value, *engine.ranks.dealt)] == [message] * 4
    engine.close()


def test_engines_meet_the_trainer_as_the_ranks_after_its_own(here, monkeypatch):
    without_gpus.install_nccl(monkeypatch.setattr, answering)
    config = RolloutConfig(max_new_tokens=4, tensor_parallel_size=2, timeout=20.0)
    engine = remote(Scripted, config, count=3)
    engine.update(WEIGHTS, 1)
    assert engine.sender.sender.source.sent.keys() == {"w"}
    ranks = [ray.get(e.actor.__ray_call__.remote(lambda self: self.engine.weight)) for e in engine.engines]
    assert ranks == [1, 3, 5]
    engine.close()


def test_all_ranks_read_the_weights_as_often(monkeypatch):
    """The shapes are read before the first broadcast, on every rank; reading may be a collective."""
    reads = []

    class Counted(list):
        def __iter__(self):
            reads.append(1)
            return super().__iter__()

    class Second(Ranks):
        rank, size = 1, 2

        def deal(self, parts):
            assert parts is None
            assert len(reads) in (1, 2)  # the shapes alone, the first time

    engine = RemoteEngine(Scripted, QUICK, Second(), [Seat({})], direct=Direct("nccl", torch.float32, "cpu"))
    for version, expected in ((1, 2), (2, 3)):
        engine.update(Counted(WEIGHTS), version)
        assert len(reads) == expected


def test_each_engine_takes_weights_from_the_learner_on_its_gpu(tmp_path):
    """Twice, in several pieces, by two learners to two engines; then other weights lie on the second GPU."""
    run_ranks(group(2), ipc_ranks.main, tmp_path)
    first, second = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(2))
    assert max(first["gaps"] + second["gaps"]) < 1e-4
    assert first["pieces"] > 0 < second["pieces"]
    assert "rollout engine 1 failed: weights 3: 1 of" in first["error"]
    assert "reached vllm's worker 0 with other checksums" in first["error"]
