"""A named pipe where a file is expected is refused, not waited for; a shell's <(...) is read."""

import os
import shlex
import subprocess
import sys

import pytest

from entrostat.logs.foreign.foreign_runs import read_path
from entrostat.logs.regular_file import require_file
from entrostat.logs.runlog import read_metrics


@pytest.mark.timeout(30)
def test_a_named_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    for read in (lambda: read_path(tmp_path / "metrics.jsonl"), lambda: read_metrics(tmp_path)):
        with pytest.raises(ValueError, match=r"metrics.jsonl is no file but a pipe or a device"):
            read()
    with pytest.raises(ValueError, match="/dev/zero is no file"):
        read_path("/dev/zero")
    require_file(tmp_path)
    require_file(tmp_path / "nothing")


@pytest.mark.slow
def test_the_pipe_of_a_shell_is_read(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {i}, "entropy": {1 - i / 50}, "reward": {i / 50}}}\n' for i in range(50)))
    command = f"{shlex.quote(sys.executable)} -m llmtrain diagnose <(cat {shlex.quote(str(log))})"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "50 steps" in done.stdout
