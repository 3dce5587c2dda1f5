"""Checks in killable processes: a lost check costs its own item only."""

import os
import re
import signal
import subprocess
import sys
import time
from math import inf, nan

import psutil
import pytest

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.pool import CheckPool
from llmtrain.verifiers.verdict import Verdict

pytestmark = pytest.mark.slow

LOST = {
    "hang": ("timeout", "timed out after 0.4 s"),
    "spin": ("timeout", "timed out after 0.4 s"),
    "exit": ("crash", "the check ended its process: exit code 3"),
    "abort": ("crash", "the check ended its process: SIGABRT"),
    "raise": ("error", "the check raised KeyError: 'no such thing'"),
    "memory": ("error", "the check raised MemoryError: "),
    "signal": ("crash", "the check ended its process: exit code -40"),
    "number": ("error", "the check returned int, not a bool or a Verdict"),
}


@pytest.fixture
def pool():
    with CheckPool("checks:check", workers=2, timeout=0.4) as pool:
        yield pool


@pytest.mark.parametrize("response", LOST)
def test_a_lost_check_costs_its_own_item_only(pool, response):
    verdicts = pool(["a", response, "b", "c"], ["a", response, "b", "wrong"])
    kind, reason = LOST[response]
    assert [v.correct for v in verdicts] == [True, False, True, False]
    assert verdicts[1].reason.startswith(reason)
    assert pool.failures == {kind: 1}


def test_an_error_names_its_place_and_its_traceback_is_kept(pool):
    reason = pool(["raise", "raise"], ["", ""])[0].reason
    assert re.search(r"KeyError: 'no such thing' \(checks.py, line \d+, in check\)", reason)
    assert len(pool.errors) == 1
    assert pool.errors[0].line in reason
    assert "Traceback" in pool.errors[0].trace
    assert "worker.py" not in pool.errors[0].trace


def test_the_others_do_not_wait_for_one_that_hangs(pool):
    start = time.monotonic()
    verdicts = pool(["hang", *"x" * 300], ["", *"x" * 300])
    assert sum(v.correct for v in verdicts) == 300
    assert time.monotonic() - start < 60  # waits of 0.4 s one after another would take two minutes


def test_order_is_kept(pool):
    texts = [str(i) for i in range(200)]
    assert [v.correct for v in pool(texts, [t if int(t) % 3 else "no" for t in texts])] == [
        i % 3 > 0 for i in range(200)
    ]


def test_a_verdict_is_passed_on_and_cut(pool):
    verdict = pool(["verdict"], [None])[0]
    assert verdict.correct
    assert verdict.reason == "as asked"
    assert verdict.extracted == "x" * 1000
    assert pool(["number extracted"], [None])[0] == Verdict(True, "as asked", "42")


def test_a_set_has_the_same_order_in_each_process():
    found = set()
    for _ in range(3):
        with CheckPool("checks:check", workers=1) as pool:
            found.add(pool(["set"], ["abcdefghij"])[0].reason)
    assert len(found) == 1


@pytest.mark.parametrize("response", ["numpy", "numpy verdict"])
def test_a_bool_of_numpy_is_one(pool, response):
    assert [v.correct for v in pool([response] * 2, [0, 2])] == [False, True]
    assert not pool.failures


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not say what a process has")
def test_memory_is_that_beyond_the_import():
    with CheckPool("checks:check", workers=1, memory_mib=64) as pool:
        assert [v.correct for v in pool(["MiB"] * 2, [32, 96])] == [True, False]
        assert pool.failures == {"error": 1}


def test_megabytes_go_through(pool):
    text = "é\0" * 200_000
    assert pool([text, text], [text, "no"])[0].correct


def sleeps(seconds: str) -> bool:
    """Return True if a process sleeps for so long."""
    done = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True)
    return f"sleep {seconds}" in done.stdout.splitlines()


def ends(seconds: str) -> bool:
    """Return True if no process sleeps for so long; one that was killed has 10 s to die, on a busy machine."""
    return any(not sleeps(seconds) or time.sleep(0.1) for _ in range(100))


def test_what_a_check_started_dies_with_it(pool):
    pool(["orphan"], [f"61.{os.getpid()}"])
    assert ends(f"61.{os.getpid()}")


def test_what_a_check_started_dies_with_the_pool():
    pool, seconds = CheckPool("checks:check", workers=1, timeout=60), f"62.{os.getpid()}"
    process = pool._keepers[0].process
    pool._keepers[0].send(["orphan", seconds])
    while not sleeps(seconds):
        time.sleep(0.02)
    pool.close()
    assert process.returncode == 0
    assert ends(seconds)


def test_a_keeper_that_is_killed_is_replaced(pool):
    for keeper in list(pool._keepers):
        os.kill(keeper.process.pid, signal.SIGKILL)
        keeper.process.wait()
    verdicts = pool(["a"] * 5, ["a"] * 5)
    assert [v.correct for v in verdicts] == [False, False, True, True, True]
    assert pool.failures == {"crash": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not tell a process that its parent ended")
def test_a_check_dies_with_its_keeper():
    with CheckPool("checks:check", workers=1, timeout=60) as pool:
        keeper = pool._keepers[0]
        (checker,) = psutil.Process(keeper.process.pid).children()
        keeper.send(["spin", ""])
        time.sleep(0.5)  # it spins by then
        keeper.process.kill()
        checker.wait(30)


def test_a_keeper_that_is_silent_is_replaced_and_ended(pool, monkeypatch):
    monkeypatch.setattr("llmtrain.verifiers.pool.GRACE_SECONDS", 0.1)
    silent = pool._keepers[1]
    os.kill(silent.process.pid, signal.SIGSTOP)
    assert [v.correct for v in pool(["a"] * 3, ["a"] * 3)].count(False) == 1
    assert pool.failures == {"crash": 1}
    assert silent.process.returncode == -signal.SIGKILL
    assert len(pool._keepers) == 2
    assert silent not in pool._keepers


def test_what_a_check_prints_is_not_shown(pool, capfd):
    assert pool(["print"], ["print"])[0].correct
    assert capfd.readouterr().out == ""


def processes() -> set[str]:
    """Sessions and parents of the processes that are alive."""
    rows = subprocess.run(["ps", "axo", "stat=,sid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {word for row in rows.splitlines() if not row.startswith("Z") for word in row.split()[1:]}


def test_no_process_is_left_after_close():
    pool = CheckPool("checks:check", workers=1)
    process = pool._keepers[0].process
    pid = str(process.pid)
    assert pid in processes()
    pool.close()
    assert process.returncode == 0  # by itself
    assert pid not in processes()
    with pytest.raises(ValueError, match="closed"):
        pool(["a"], ["a"])


@pytest.mark.parametrize(
    ("name", "timeout", "names"),
    [
        ("checks:missing", 1, "'missing'"),
        ("no_such_module:check", 1, "'no_such_module'"),
        ("checks:not_a_function", 1, "not_a_function"),
        ("maths", 1, "'maths'; .*math"),
        ("ends:check", 1, "'ends:check': .*ended the process"),
        *(("math", timeout, "timeout > 0") for timeout in (0, nan, inf)),
    ],
)
def test_a_verifier_that_cannot_be_is_named(tmp_path, monkeypatch, name, timeout, names):
    (tmp_path / "ends.py").write_text("import os\nos._exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=names):
        get_verifier(name, workers=1, timeout=timeout)


LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("truths", "names"),
    [(["a"], "2 responses for 1 "), (["a", {1, 2}], "ground truth 1 "), (["a", LOOP], "ground truth 1 ")],
)
def test_ground_truths_that_cannot_be_sent_are_named(pool, truths, names):
    with pytest.raises(ValueError, match=names):
        pool(["a", "b"], truths)
