"""Nothing is left of a process that was killed, however far its descendants have gone from it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from llmtrain.process.family import GRACE, POLL, ends_with_family, family, left_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
PARENT = """
import subprocess, sys, time
from llmtrain.process.family import ends_with_family
child = [sys.executable, "-c", "import subprocess, time; subprocess.Popen(['sleep', '300']); time.sleep({})"]
with ends_with_family():
    subprocess.Popen(child, start_new_session=True)
    time.sleep(300)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [300, pytest.param(2.5, marks=pytest.mark.long)])
def test_a_killed_process_leaves_nothing(seconds):
    """Also a process whose parent has ended before the one that is killed."""
    process = subprocess.Popen([sys.executable, "-c", PARENT.format(seconds)], stdout=subprocess.DEVNULL)
    known: dict[int, str] = {}
    try:
        end = time.monotonic() + 30
        while len(known) < 3 and time.monotonic() < end:  # watcher, child, and its child
            known |= family(process.pid)
            time.sleep(0.05)
        assert len(known) == 3
        time.sleep(POLL + (seconds if seconds < 300 else 0))  # the watcher has seen them
    finally:
        process.kill()
        process.wait()
    end = time.monotonic() + POLL + GRACE + 20
    while left_of(known) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left_of(known)


def test_a_process_that_ends_by_itself_leaves_its_children_alone():
    with ends_with_family():
        child = subprocess.Popen(["sleep", "300"])
    try:
        time.sleep(POLL)
        os.kill(child.pid, 0)
        assert child.pid in family(os.getpid())
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert child.pid not in family(os.getpid())
