"""Phases and what lies inside them."""

import contextlib
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
    """A mark on a GPU that has worked for `now` seconds; it is read only after it, or a later one, was waited for."""

    now, waits, made, reached = 0.0, 0, 0, 0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Event.made += 1
        self.at, self.number = Event.now, Event.made

    def synchronize(self):
        Event.waits += 1
        Event.reached = max(Event.reached, self.number)

    def elapsed_time(self, other):
        assert max(self.number, other.number) <= Event.reached
        return 1e3 * (other.at - self.at)


@pytest.fixture
def gpu(monkeypatch):
    fresh = type("Event", (Event,), {})
    monkeypatch.setattr(torch.cuda, "Event", fresh)
    Event.now, Event.waits, Event.made, Event.reached = 0.0, 0, 0, 0
    return Clock("cuda")


def test_a_gpu_is_waited_for_once_a_reading(gpu):
    with gpu.phase("outer"):
        Event.now += 1
        for _ in range(3):
            with gpu.phase("inner"):
                Event.now += 2
    assert Event.waits == 0
    assert gpu.read() == {"time/outer": 1.0, "time/inner": 6.0}
    assert Event.waits == 1
    with gpu.phase("inner"):
        Event.now += 5
    assert gpu.read() == {"time/inner": 5.0}


def test_nothing_is_asked_of_a_gpu_after_an_error(gpu):
    """A call of CUDA after an error would raise another one, which hides it."""
    with pytest.raises(KeyError), gpu.phase("around"), gpu.phase("bad"):
        raise KeyError
    assert (Event.made, Event.waits) == (2, 0)  # the two beginnings
    assert gpu.failed == "bad"


def test_time_goes_on_after_an_error_that_was_handled(gpu):
    """Such as an update that the guard leaves out: the rest of the run has its times, and so has this step."""
    with gpu.phase("other"):
        with contextlib.suppress(KeyError), gpu.phase("optimizer"):
            Event.now += 2
            raise KeyError
        Event.now += 3
    assert gpu.read() == {"time/other": 5.0}
    with gpu.phase("optimizer"):
        Event.now += 2
    assert gpu.failed is None
    assert gpu.read() == {"time/optimizer": 2.0}


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
