"""Phases and what lies inside them."""

import time

import pytest
import torch

from llmtrain.process.clock import Clock


def test_the_inner_phase_alone_counts_its_time():
    clock = Clock("cpu")
    with clock.phase("outer"):
        time.sleep(0.02)
        with clock.phase("inner"):
            time.sleep(0.05)
        with clock.phase("inner"):
            time.sleep(0.05)
    spent = clock.read()
    assert set(spent) == {"time/outer", "time/inner"}
    assert spent["time/inner"] >= 0.1
    assert 0.02 <= spent["time/outer"] < spent["time/inner"]
    assert clock.read() == {}


def test_a_reading_inside_a_phase_begins_anew():
    clock = Clock("cpu")
    with clock.phase("long"):
        time.sleep(0.03)
        assert clock.read()["time/long"] >= 0.03
    assert clock.read()["time/long"] < 0.03


def test_an_error_ends_the_phase():
    clock = Clock("cpu")
    with pytest.raises(KeyError), clock.phase("around"), clock.phase("bad"):
        raise KeyError
    assert clock.failed == "bad"
    with clock.phase("good"):
        pass
    assert set(clock.read()) == {"time/around", "time/bad", "time/good"}


def test_work_on_a_gpu_is_waited_for_until_an_error(monkeypatch):
    """What CUDA says after that would hide it."""
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(True))
    clock = Clock("cuda")
    with clock.phase("good"):
        assert len(waits) == 1
    assert len(waits) == 2
    with pytest.raises(KeyError), clock.phase("bad"):
        raise KeyError
    assert len(waits) == 3


def test_a_whole_phase_counts_the_phases_inside_it():
    clock = Clock("cpu")
    with clock.phase("outer"):
        with clock.phase("inner"):
            time.sleep(0.01)
        before = clock.spent["inner"]
        with clock.whole_phase("probes"), clock.phase("inner"):
            time.sleep(0.05)
    spent = clock.read()
    assert set(spent) == {"time/outer", "time/inner", "time/probes"}
    assert spent["time/probes"] >= 0.05
    assert spent["time/inner"] == before
