"""Locks that are held are kept, those of killed processes are not."""

import subprocess
import sys
from pathlib import Path

import pytest

from llmtrain.policy.stale_builds import release

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc")
HOLD = """
import sys, time
from torch.utils.file_baton import FileBaton
assert FileBaton(sys.argv[1]).try_acquire()
print("held", flush=True)
time.sleep(100)
"""


def test_a_lock_is_released_when_its_builder_was_killed(tmp_path):
    lock = tmp_path / "py" / "op" / "lock"
    lock.parent.mkdir(parents=True)
    builder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True)
    try:
        assert builder.stdout.readline() == "held\n"
        assert release(tmp_path) == []
        assert lock.exists()
    finally:
        builder.kill()
        builder.wait()
    assert lock.exists()
    assert release(tmp_path) == [lock]
    assert not lock.exists()


def test_nothing_is_built_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "none"))
    assert release() == []
