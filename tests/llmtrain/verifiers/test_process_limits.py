"""Memory and processor time of processes together, read from /proc."""

import os
import subprocess
import sys

import pytest

from llmtrain.verifiers.process_limits import Sums, below

pytestmark = pytest.mark.skipif(
    not os.path.exists(f"/proc/self/task/{os.getpid()}/children"), reason="the kernel lists no children"
)
BUSY = "import os, time\nfor _ in range(2): os.fork()\nheld = bytearray(20 << 20)\nend = time.process_time() + 0.3\n"
BUSY += "while time.process_time() < end: pass\nprint(1, flush=True)\ntime.sleep(9)"


@pytest.fixture
def busy():
    """Four processes that hold 20 MiB and used 0.3 s each."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY], stdout=subprocess.PIPE) as process:
        pids = [process.pid]
        for _ in range(4):
            process.stdout.readline()
        pids += below(process.pid)
        yield pids
        for pid in pids:
            os.kill(pid, 9)


def test_sums(busy):
    assert len(busy) == 4
    assert set(busy) <= set(below(os.getpid()))
    above = busy[0]  # of the three others
    assert Sums(1024, 60, above).exceeded() == ""
    assert Sums(50, 60, above).exceeded() == "more than 50 MiB of memory"
    assert Sums(1024, 0, above).exceeded() == "more than 0 s of processor time"


def test_time_of_processes_that_ended_counts(busy):
    sums = Sums(1024, 1, busy[-1])  # it has no children
    assert sums.exceeded() == ""
    sums.seconds[2**22 + 1] = 1.5
    assert sums.exceeded() == "more than 1 s of processor time"
