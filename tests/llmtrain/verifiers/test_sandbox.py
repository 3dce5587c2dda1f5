"""Limits that hold for all processes of a program together."""

import os
import signal
import subprocess
import sys
import time

import pytest

from llmtrain.verifiers import get_verifier

pytestmark = pytest.mark.slow

TESTS = ["assert add(1, 2) == 3"]


@pytest.fixture(scope="module")
def verify():
    with get_verifier("python", workers=1, timeout=6.0, memory_mib=512) as verifier:
        yield verifier


FORKS = """
import mmap, os, time
for _ in range(4):
    if os.fork() == 0:
        held = {held}
        for i in range(0, len(held), 4096): held[i] = 1
        time.sleep(9)
time.sleep(4)
def add(a, b): return a + b
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels have other limits")
@pytest.mark.parametrize("held", ["bytearray(170 << 20)", "mmap.mmap(-1, 170 << 20)"])
def test_memory_is_limited_for_all_processes_together(verify, held):
    """Each of four forks takes a third of the limit."""
    assert verify([FORKS.format(held=held)], [TESTS])[0].reason == "more than 512 MiB of memory"


def test_memory_that_forks_share_is_counted_once(verify):
    code = (
        "import os, time\nheld = bytearray(300 << 20)\nfor _ in range(3):\n    if os.fork() == 0:\n"
        "        time.sleep(9)\ntime.sleep(0.5)\ndef add(a, b): return a + b"
    )
    verdict = verify([code], [TESTS])[0]
    assert verdict.correct, verdict.reason


ESCAPES = """
import ctypes
call = ctypes.CDLL(None).syscall
assert [call(*x) for x in ({calls})] == [-1] * {number}
def add(a, b): return a + b
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls of x86-64")
def test_calls_that_get_around_the_limits_are_refused(verify):
    """unshare and clone of namespaces, clone3, memfd_create, shmget, ptrace."""
    calls = (
        "(272, 1 << 28), (56, 0x10000011, 0, 0, 0, 0), (435, 0, 0), (319, b'x', 0), (29, 0, 4096, 896), (101, 0, 0, 0)"
    )
    verdict = verify([ESCAPES.format(calls=calls, number=6)], [TESTS])[0]
    assert verdict.correct, verdict.reason


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root on Linux can make namespaces")
def test_files_are_limited_together(verify):
    code = "for n in range(99): open(f'{n}', 'wb').write(bytes(1 << 20))"
    assert "No space left on device" in verify([code], [TESTS])[0].reason


def test_threads_and_processes_of_honest_programs_run(verify):
    code = (
        "import subprocess, sys\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "subprocess.run([sys.executable, '-c', 'print(1)'], check=True)\n"
        "def add(a, b):\n    with ThreadPoolExecutor(2) as pool: return pool.submit(lambda: a + b).result()"
    )
    verdict = verify([code], [TESTS])[0]
    assert verdict.correct, verdict.reason


KILLED = """
from llmtrain.verifiers import get_verifier
with get_verifier("python", workers=1, timeout=60.0) as verifier:
    verifier(["import ctypes, time\\nctypes.CDLL(None).prctl(15, b{name!r})\\ntime.sleep(60)"], ["assert f(1)"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels have no signal for it")
def test_nothing_is_left_if_the_verifier_is_killed():
    name = f"left-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", KILLED.format(name=name)]) as process:
        while not _runs(name):
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while _runs(name) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(name)


def _runs(name):
    return name in subprocess.run(["ps", "axo", "comm"], capture_output=True, text=True, check=True).stdout
