"""Checks in killable processes: a lost check costs its own item only."""

import os
import signal
import subprocess
import time

import pytest

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.pool import CheckPool

LOST = {
    "hang": ("timeout", "timed out after 0.4 s"),
    "spin": ("timeout", "timed out after 0.4 s"),
    "exit": ("crash", "the check ended its process: exit code 3"),
    "abort": ("crash", "the check ended its process: SIGABRT"),
    "raise": ("error", "the check raised KeyError: 'no such thing'"),
    "memory": ("error", "the check raised MemoryError: "),
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
    assert verdicts[1].reason == reason
    assert pool.failures == {kind: 1}


def test_the_others_do_not_wait_for_one_that_hangs(pool):
    start = time.monotonic()
    verdicts = pool(["hang", *"x" * 300], ["", *"x" * 300])
    assert sum(v.correct for v in verdicts) == 300
    assert time.monotonic() - start < 1.2


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


@pytest.mark.parametrize("response", ["numpy", "numpy verdict"])
def test_a_bool_of_numpy_is_one(pool, response):
    assert [v.correct for v in pool([response] * 2, [0, 2])] == [False, True]
    assert not pool.failures


def test_megabytes_go_through(pool):
    text = "é\0" * 200_000
    assert pool([text, text], [text, "no"])[0].correct


def test_what_a_check_started_dies_with_it(pool):
    pool(["orphan"], [""])
    assert "sleep 61.25" not in subprocess.run(["ps", "axo", "args"], capture_output=True, text=True).stdout


def test_a_keeper_that_is_killed_is_replaced(pool):
    for keeper in list(pool._keepers):
        os.kill(keeper.process.pid, signal.SIGKILL)
        keeper.process.wait()
    verdicts = pool(["a"] * 5, ["a"] * 5)
    assert [v.correct for v in verdicts] == [False, False, True, True, True]
    assert pool.failures == {"crash": 2}


def processes() -> set[str]:
    """Sessions and parents of the processes that are alive."""
    rows = subprocess.run(["ps", "axo", "stat=,sid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {word for row in rows.splitlines() if not row.startswith("Z") for word in row.split()[1:]}


def test_no_process_is_left_after_close():
    pool = CheckPool("checks:check", workers=1)
    pid = str(pool._keepers[0].process.pid)
    assert pid in processes()
    pool.close()
    assert pid not in processes()
    with pytest.raises(ValueError, match="closed"):
        pool(["a"], ["a"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("checks:missing", "no attribute 'missing'"),
        ("no_such_module:check", "No module named 'no_such_module'"),
        ("checks:not_a_function", "not_a_function is not a function"),
        ("maths", "unknown verifier 'maths'; choose from math, exact"),
    ],
)
def test_a_verifier_that_is_not_there(name, message):
    with pytest.raises(ValueError, match=message):
        get_verifier(name)


def test_bad_arguments(pool):
    with pytest.raises(ValueError, match="2 responses for 1 ground truths"):
        pool(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="ground truth 1 cannot be sent"):
        pool(["a", "b"], ["a", {1, 2}])
    with pytest.raises(ValueError, match="timeout > 0"):
        get_verifier("math", timeout=0)
