"""Rollout engines in real Ray actors: order, shares, versions, and every way in which one can fail."""

import os
import re
import signal
import time
from dataclasses import replace
from functools import partial

import pytest
import torch
from ray_engines import Scripted

pytest.importorskip("ray")

import ray
from remote_scene import gone, pid_of, remote, request, tokens, weights

from llmtrain.cluster.topology import cluster
from llmtrain.policy.model import load
from llmtrain.process.ranks import Ranks
from llmtrain.rollout.hf_engine import CopyEngine, HFEngine
from llmtrain.rollout.ray.packed_weights import pack, unpack
from llmtrain.rollout.ray.remote_actor import NeverRanError, RemoteActor
from llmtrain.rollout.ray.remote_engine import start_here
from llmtrain.rollout.rollout_engine import Request, RolloutError, Start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def here():
    with cluster(""):
        yield


class Several(Ranks):
    """The first of three ranks, who sees what the others get."""

    size = 3

    def deal(self, parts):
        self.dealt = parts
        return parts[0]


LIES = {"nan": 101, "short": 102, "long": 103, "stale": 104, "raise": 105}
NAMES = {"nan": "not finite", "short": "(6); got 5", "long": "100 tokens; 1 to 4", "stale": "2; ", "raise": "disk full"}


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(scope="module")
def pair(here, gate):
    """Two engines and three ranks, to be asked again and again; two seeds are answered once `gate` exists."""
    faults = {seed: fault for fault, seed in LIES.items()} | {11: gate, 12: gate}
    engine = remote(partial(Scripted, faults), 2, Several(), timeout=60.0)
    yield engine
    engine.close()


def test_engines_give_back_what_they_hold_and_a_hung_one_is_not_waited_for(here, tmp_path):
    engine = remote(partial(Scripted, closed=tmp_path / "closed"))
    engine.submit(request())()
    engine.close()
    assert (tmp_path / "closed").exists()
    engine = remote(partial(Scripted, {7: "stop"}), timeout=900.0)  # longer than any test may take
    pid = pid_of(engine)  # it runs
    engine.submit(request())
    engine.close()
    assert gone(pid)


class Waiting(Several):
    """The first of three ranks, who notes when all of them are waited for."""

    def __init__(self, events) -> None:
        super().__init__()
        self.events = events

    def barrier(self):
        with self.events.open("a") as file:
            file.write("barrier\n")


def test_engines_and_learners_take_turns_on_a_gpu(here, tmp_path, monkeypatch):
    """An engine has started when learners go on; it wakes up after all of them have emptied their caches."""
    events = tmp_path / "events"
    note = lambda event: events.open("a").write(event + "\n")  # noqa: E731
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: note("empty_cache"))
    engine = remote(partial(Scripted, events=events, slow=0.5), ranks=Waiting(events))
    engine.share(sleep_level=2)
    note("go on")
    shares = [list(range(5)), [], []]
    for version in (0, 1, 2):
        if engine.version != version:
            engine.update(weights(version), version)
        assert engine.version == version
        assert engine.submit(request(shares=shares))().responses() == tokens(range(5), weight=version)
        engine.release()
        assert engine.version is None
        note("train")
    engine.close()
    step = ["answer", "sleep", "train"]
    sync = ["empty_cache", "barrier", "update"]
    assert events.read_text().split("\n")[:-1] == ["start", "go on", *step, *sync, *step, *sync, *step]


@pytest.mark.parametrize(("fault", "message"), [("raise", "disk full"), (3.0, "sleep within")])
def test_an_engine_that_does_not_sleep_is_an_error_on_all_ranks(here, fault, message):
    ranks = Several()
    engine = remote(partial(Scripted, {"release": fault}), ranks=ranks)
    engine.share(sleep_level=2)
    with pytest.raises(RolloutError, match=message):
        engine.release()
    assert [str(error) for error in ranks.dealt] == [str(ranks.dealt[0])] * 3
    engine.close()


def test_engines_with_gpus_of_their_own_never_sleep(here, tmp_path):
    events = tmp_path / "events"
    engine = remote(partial(Scripted, events=events))
    engine.submit(request())()
    engine.release()
    assert engine.version == 0
    engine.close()
    assert events.read_text() == "start\nanswer\n"


@pytest.mark.parametrize("shares", [[[1, 4], [], [0, 2, 3]], [[], [0], []]])
def test_ranks_get_their_shares_whoever_answers(pair, shares):
    """Five prompts over two engines, and one prompt, which leaves an engine without."""
    pair.submit(request(sum(map(len, shares)), shares=shares))()
    for share, rollouts in zip(shares, pair.ranks.dealt, strict=True):
        assert rollouts.responses() == tokens(share, weight=0)
        assert rollouts.prompt_index.tolist() == [p for p in share for _ in range(2)]
        assert len(rollouts.logp) == len(rollouts.response_ids)
        assert len(rollouts.prompt_ids) == sum(map(len, shares))


def test_weights_come_after_what_was_asked_before_and_nobody_waits(pair, gate):
    """Asked with weights 0, 1, 1 and 3 before anything was answered: each is answered with those."""
    pair.submit(request())()
    answers = [pair.submit(request(seed=11))]
    pair.update(weights(1), 1)
    answers += [pair.submit(request(seed=12)), pair.submit(request(seed=13))]
    pair.update(weights(2), 2)
    pair.update(weights(3), 3)
    answers += [pair.submit(request(seed=14))]
    assert pair.version == 3
    gate.touch()
    for answer, seed, version in zip(answers, (11, 12, 13, 14), (0, 1, 1, 3), strict=True):
        rollouts = answer()
        assert set(rollouts.version.tolist()) == {version}
        assert rollouts.responses() == tokens(range(5), seed=seed, weight=version)


@pytest.mark.parametrize("fault", LIES)
def test_a_lie_is_an_error_on_all_ranks(pair, fault):
    if pair.version < 3:
        pair.update(weights(3), 3)
    with pytest.raises(RolloutError, match=re.escape(NAMES[fault])) as raised:
        pair.submit(request(seed=LIES[fault]))()
    assert str(raised.value).startswith("rollout engine 0")
    assert [str(error) for error in pair.ranks.dealt] == [str(raised.value)] * 3
    assert not pair.jobs


def test_weights_that_were_not_taken(pair):
    pair.update(weights(-1), 9)
    with pytest.raises(RolloutError, match=r"rollout engine 0 reports weights \[3\] instead of \[9\]"):
        pair.submit(request())()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("die", "rollout engine 0 crashed"),
        pytest.param("stop", "rollout engine 0 hangs: .* 2 s", marks=pytest.mark.long),
    ],
)
def test_a_lost_engine_is_an_error_in_time_and_leaves_no_process(here, fault, message):
    engine = remote(partial(Scripted, {7: fault}))
    engine.submit(request(seed=0))()
    pid, began = pid_of(engine), time.monotonic()
    with pytest.raises(RolloutError, match=message):
        engine.submit(request())()
    print(f"named after {time.monotonic() - began:.1f} s")
    engine.close()
    assert gone(pid)


@pytest.mark.long
@pytest.mark.parametrize("restarts", [0, 1])
def test_an_engine_that_dies_idle_is_noticed_by_the_next_request(here, restarts):
    """It is named, or another one answers with the same weights; no process is left."""
    engine = remote(Scripted, restarts=restarts)
    engine.update(weights(11), 1)
    engine.submit(request(seed=0))()
    pid = pid_of(engine)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    began = time.monotonic()
    if restarts:
        assert engine.submit(request(seed=1))().responses() == tokens(range(5), seed=1, weight=11)
        pid = pid_of(engine)
    else:
        with pytest.raises(RolloutError, match="rollout engine 0 crashed"):
            engine.submit(request(seed=1))()
        print(f"named after {time.monotonic() - began:.1f} s")
    engine.close()
    assert gone(pid)


@pytest.mark.long
def test_an_engine_that_cannot_start(here):
    with pytest.raises(RolloutError, match=r"rollout engine 0 .*TypeError"):
        remote(partial(Scripted, colour="red")).submit(request())()


def test_a_fresh_start_gives_what_would_have_come_and_there_are_no_more_than_allowed(here, tmp_path):
    """Three requests of two versions are in flight when the engine dies at the second; a lie comes later."""
    engine = remote(partial(Scripted, {1: "die"}, tmp_path / "died"), restarts=1)
    answers = [engine.submit(request(seed=0))]
    engine.update(weights(11), 1)
    answers += [engine.submit(request(seed=1)), engine.submit(request(seed=2))]
    engine.update(weights(22), 2)
    found = [answer() for answer in answers]
    assert (tmp_path / "died").exists()
    assert [set(rollouts.version.tolist()) for rollouts in found] == [{0}, {1}, {1}]
    assert [rollouts.responses() for rollouts in found] == [
        tokens(range(5), seed=seed, weight=weight) for seed, weight in enumerate([0, 11, 11])
    ]
    assert engine.submit(request(seed=3))().responses() == tokens(range(5), seed=3, weight=22)
    assert list(engine.weights) == [2], "older weights are let go"
    engine.update(weights(-1), 3)
    with pytest.raises(RolloutError, match="reports weights"):
        engine.submit(request())()
    engine.close()


def test_weights_survive_the_way(here):
    sent = [
        ("matrix", torch.randn(3, 5)),
        ("half", torch.randn(4).bfloat16()),
        ("turned", torch.randn(2, 3).T),
        ("scalar", torch.tensor(2.0)),
    ]
    found = dict(unpack(ray.get(ray.put(pack(sent)))))
    assert list(found) == [name for name, _ in sent]
    for name, tensor in sent:
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype
        found[name].zero_()  # writable, and nobody else's


def test_a_copy_of_the_policy_answers_as_the_policy(small):
    """With the weights of the folder, and with others that it was sent."""
    model, tokenizer = load(small.model.path)
    config = replace(small.rollout, old_logp="trainer")  # with statistics log π is rounded otherwise
    policy, copy = HFEngine(model, tokenizer, config), CopyEngine(small.model.path, config)
    for version in (0, 1):
        asked = Request(
            tokenizer(["1 2 3=", "4 5="])["input_ids"], replace(small.rollout.sampling, samples=3), [[0, 1]], seed=5
        )
        mine, its = policy.submit(asked)(), copy.submit(asked)()
        assert mine.responses() == its.responses()
        assert torch.equal(mine.logp, its.logp)
        assert set(its.version.tolist()) == {version}
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.1)
        policy.update([], 1)
        copy.update(model.named_parameters(), 1)


@pytest.mark.parametrize(("threads", "cores"), [(0, 3), (2, 2)])
def test_an_engine_uses_the_threads_it_is_given(small, monkeypatch, threads, cores):
    """Torch is imported in an actor before its environment is set, and by then has the one thread that Ray allows."""
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    try:
        start_here(Start(folder=small.model.path, config=small.rollout, stop_token_ids=[0]), threads)
        assert torch.get_num_threads() == cores
    finally:
        torch.set_num_threads(before)


def test_weights_of_another_model(small):
    copy = CopyEngine(small.model.path, small.rollout)
    for sent, names in (([("head", torch.ones(2))], r"head .*\(2,\)"), ([], r"model\.embed_tokens\.weight")):
        with pytest.raises(RolloutError, match=names):
            copy.update(sent, 1)
    assert copy.version == 0


def test_an_actor_on_a_node_that_ray_does_not_know_to_be_lost_costs_no_restart(here, monkeypatch):
    """Ray needs some 12 s to see that a node is gone, and puts an engine that is started anew there until then."""
    engine = remote(partial(Scripted, {}), restarts=1, timeout=60.0)
    answer, said = RemoteActor.answer, iter([RolloutError("crashed"), *[NeverRanError("crashed")] * 2])

    def fails_at_first(self, *args):
        if error := next(said, None):
            raise error
        return answer(self, *args)

    monkeypatch.setattr(RemoteActor, "answer", fails_at_first)
    assert len(engine.submit(request())()) == 10
    assert engine.restarts == 0
    assert engine.starts == 4
    engine.close()
