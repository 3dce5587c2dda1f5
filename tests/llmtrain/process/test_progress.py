"""Progress of a long command: a bar on a terminal, lines elsewhere, and the time left."""

import io
import time

import pytest
from rich.console import Console

from llmtrain.process import progress
from llmtrain.process.progress import Bar, clock_time


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=80)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (9.6, "0:10"), (340, "5:40"), (3600, "1:00:00"), (3940, "1:05:40")]
)
def test_times(seconds, shown):
    assert clock_time(seconds) == shown


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_said_is_printed_where_no_bar_is_drawn(terminal):
    screen = console(terminal)
    with Bar("score", 4, console=screen) as bar:
        bar.show(advance=1, numbers="25% correct")
        bar.say("one of them: [1, 2]")
    assert ("one of them: [1, 2]\n" in screen.file.getvalue()) != terminal
    assert ("25% correct" in screen.file.getvalue()) == terminal


def test_time_left_is_by_the_pace_after_the_first_count(monkeypatch):
    """The first takes 20 s, the others 2 s each: 6 of them are left, and 1 s has passed since the last."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bar = Bar("steps", 13, done=3, console=console(False))
    for done, seconds in enumerate((20, 2, 2, 2), 4):
        now[0] += seconds
        bar.show(completed=done)
        assert done > 4 or bar.left() == "…"
    now[0] += 1
    assert bar.left() == "0:11"
    now[0] += 60
    assert bar.left() == "0:00"


def test_silence(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bar = Bar("steps", 13, console=console(False))
    now[0] += progress.SAY_EVERY - 1
    assert not bar.is_silent()
    now[0] += 1
    assert bar.is_silent()
    bar.say("here")
    assert not bar.is_silent()
