"""Ranks of this machine end by themselves, which they announce, or are lost, and then named by their launcher."""

import os
import sys
import time
from pathlib import Path

import pytest

from llmtrain.process import local_ranks
from llmtrain.process.local_ranks import LostRankError, run_ranks

RANKS = """
import os, pathlib, sys, time
from llmtrain.process.local_ranks import announce_end
rank, folder = int(os.environ["RANK"]), pathlib.Path(sys.argv[1])
(folder / f"part.{{rank}}").write_text(str(os.getpid()))
(folder / f"part.{{rank}}").rename(folder / str(rank))

def wait_for_end_of(other):
    while not (folder / str(other)).exists():
        time.sleep(0.02)
    while pathlib.Path("/proc", (folder / str(other)).read_text()).exists():
        time.sleep(0.02)

{}
"""
LOST = """
if rank == 2:
    {}
if rank == 1:
    wait_for_end_of(2)
    announce_end()
    sys.exit(1)
time.sleep(60)
"""


def run(script: str, folder: Path, size: int) -> int:
    return run_ranks([sys.executable, "-c", RANKS.format(script), str(folder)], size)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(local_ranks, "GRACE", 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os.kill(os.getpid(), 40)", "killed by signal 40"),
        ("announce_end(); os.abort()", "killed by SIGABRT"),
        *((f"os._exit({code})", f"it ended with exit code {code}") for code in (0, 1, 2, 9, 130, 143)),
    ],
)
def test_a_rank_that_ended_without_a_word_is_named(tmp_path, end, cause):
    """Another ends because of it and says so, one waits for it; whatever the exit code, nothing is left."""
    began = time.monotonic()
    with pytest.raises(LostRankError, match=f"^rank 2 was lost: {cause}$"):
        run(LOST.format(end), tmp_path, 3)
    assert time.monotonic() - began < 50, "the third waits for 60 s"
    ranks = [path.read_text() for path in tmp_path.glob("[0-9]")]
    assert not any(Path("/proc", pid).exists() for pid in ranks)


@pytest.mark.usefixtures("quick")
def test_of_two_lost_ranks_the_first_is_named(tmp_path):
    """The second is killed because of it, as by a process group that finds it missing."""
    script = "if rank:\n    os._exit(9)\nwait_for_end_of(1)\nos.abort()"
    with pytest.raises(LostRankError, match=r"^rank 1 was lost: it ended with exit code 9$"):
        run(script, tmp_path, 2)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("codes", [(0, 0), (2, 2), (0, 1), (143, 143)])
def test_ranks_that_announce_their_end_have_said_why(tmp_path, codes):
    assert run(f"announce_end(); sys.exit({codes}[rank])", tmp_path, 2) == max(codes)


def test_other_processes_announce_nothing(monkeypatch):
    """As under torchrun; and a rank whose launcher was killed."""
    monkeypatch.delenv(local_ranks.LEAVING, raising=False)
    local_ranks.announce_end()
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setenv(local_ranks.LEAVING, str(writer))
    monkeypatch.setenv("RANK", "0")
    local_ranks.announce_end()
    os.close(writer)
