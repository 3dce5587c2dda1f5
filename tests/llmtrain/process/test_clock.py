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


class Event:
    """A mark on a GPU that has worked off `now` seconds; it cannot be read before it was waited for."""

    now, waits, made = 0.0, 0, 0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = Event.now
        Event.made += 1

    def synchronize(self):
        Event.waits += 1

    def elapsed_time(self, other):
        assert Event.waits
        return 1e3 * (other.at - self.at)


def test_a_gpu_is_waited_for_once_a_reading_and_never_after_an_error(monkeypatch):
    """A call of CUDA after an error would raise another one, which hides it."""
    monkeypatch.setattr(torch.cuda, "Event", Event)
    clock = Clock("cuda")
    with clock.phase("outer"):
        Event.now += 1
        for _ in range(3):
            with clock.phase("inner"):
                Event.now += 2
    assert Event.waits == 0
    assert clock.read() == {"time/outer": 1.0, "time/inner": 6.0}
    assert Event.waits == 1
    with clock.phase("inner"):
        Event.now += 5
    assert clock.read() == {"time/inner": 5.0}
    made = Event.made
    with pytest.raises(KeyError), clock.phase("bad"):
        raise KeyError
    clock.read()
    assert Event.made == made + 1
    assert Event.waits == 2


def test_a_whole_phase_counts_the_phases_inside_it():
    clock = Clock("cpu")
    with clock.phase("outer"), clock.whole_phase("probes"), clock.phase("inner"):
        time.sleep(0.05)
    spent = clock.read()
    assert set(spent) == {"time/outer", "time/probes"}
    assert spent["time/probes"] >= 0.05
    with clock.phase("inner"):
        pass
    assert set(clock.read()) == {"time/inner"}
