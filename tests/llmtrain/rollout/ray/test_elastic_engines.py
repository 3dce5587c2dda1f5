"""Elastic rollout engines in real Ray actors: they join, are lost and are replaced while answers stay the same."""

import os
import signal
import time
from functools import partial

import pytest
from ray_engines import Scripted

pytest.importorskip("ray")

import ray
from remote_scene import SEAT, gone, pid_of, remote, request, tokens, weights

from llmtrain.cluster.topology import cluster
from llmtrain.rollout.ray.places import Seat

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def here():
    with cluster(""):
        yield


def joined(engine, count):
    """Ask until so many elastic engines share requests; the answers are right before, meanwhile and after."""
    end = time.monotonic() + 60
    while len(engine.elastic) < count:
        assert time.monotonic() < end
        assert engine.submit(request())().responses() == tokens(range(5), weight=engine.sent)
        time.sleep(0.05)
    return list(engine.elastic)


def process_of(elastic):
    return ray.get(elastic.actor.__ray_call__.remote(lambda self: os.getpid()))


def test_engines_join_and_leave_while_answers_stay_the_same(here, capsys):
    """Two join; one dies idle, and another takes its place. A request is shared by all that are there."""
    engine = remote(Scripted, elastic=[SEAT] * 2)
    assert engine.submit(request())().responses() == tokens(range(5))
    assert not engine.coming, "they are asked for once weights were sent"
    engine.update(weights(1), 1)
    first, second = joined(engine, 2)
    engine.submit(request())
    assert [part.engine for part in engine.jobs[0].parts] == [*engine.engines, first, second]
    engine.update(weights(2), 2)
    os.kill(process_of(second), signal.SIGKILL)
    assert engine.submit(request(seed=1))().responses() == tokens(range(5), seed=1, weight=2)
    assert list(engine.elastic) == [first]
    engine.update(weights(3), 3)
    assert joined(engine, 2)[0] is first
    said = capsys.readouterr().out
    assert f"{second.name} crashed; rollout engines: 2\n" in said
    assert said.endswith("elastic rollout engine 2 joins; rollout engines: 3\n")
    engine.close()


@pytest.mark.long
@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.long), signal.SIGSTOP])
def test_requests_of_a_lost_elastic_engine_are_repeated_with_their_weights(here, number):
    """Requests of three versions are in flight when it is lost, crashed or hung; then all hold the newest weights."""
    engine = remote(partial(Scripted, {11: 0.5}), elastic=[SEAT])
    engine.update(weights(1), 1)
    (lost,) = joined(engine, 1)
    pid = process_of(lost)
    answers = [engine.submit(request(seed=11))]
    for version in (2, 3):
        engine.update(weights(version), version)
        answers.append(engine.submit(request(seed=version)))
    engine.update(weights(4), 4)
    os.kill(pid, number)
    for answer, seed, version in zip(answers, (11, 2, 3), (1, 2, 3), strict=True):
        rollouts = answer()
        assert set(rollouts.version.tolist()) == {version}
        assert rollouts.responses() == tokens(range(5), seed=seed, weight=version)
    assert not engine.elastic
    assert engine.submit(request(seed=5))().responses() == tokens(range(5), seed=5, weight=4)
    assert list(engine.weights) == [4]
    engine.close()
    assert gone(pid)


@pytest.mark.long
def test_a_lost_elastic_engine_and_a_restarted_one(here):
    """Both are lost in one request: the restarted engine also repeats what the elastic one leaves."""
    engine = remote(partial(Scripted, {11: 0.5}), restarts=1, elastic=[SEAT])
    engine.update(weights(1), 1)
    (lost,) = joined(engine, 1)
    pids = process_of(lost), pid_of(engine)
    answer = engine.submit(request(seed=11))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert answer().responses() == tokens(range(5), seed=11, weight=1)
    assert engine.restarts == 0
    engine.close()


@pytest.mark.long
def test_elastic_engines_without_room_are_not_waited_for(here):
    engine = remote(Scripted, elastic=[Seat({"num_cpus": 10_000})])
    for version in (1, 2):
        engine.update(weights(version), version)
        assert engine.submit(request())().responses() == tokens(range(5), weight=version)
    assert len(engine.coming) == 1
    engine.close()


@pytest.mark.long
def test_an_elastic_engine_that_cannot_start_is_said(here, capsys):
    engine = remote(Scripted, elastic=[SEAT])
    engine.make = partial(Scripted, colour="red")
    engine.update(weights(1), 1)
    end = time.monotonic() + 60
    while "elastic rollout engine 0 did not start: TypeError" not in capsys.readouterr().out:
        assert time.monotonic() < end
        assert engine.submit(request())().responses() == tokens(range(5), weight=1)
        time.sleep(0.05)
    engine.close()
