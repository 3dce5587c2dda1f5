"""Exit codes of processes whose parent does not say them."""

import os
import subprocess
import sys

import pytest
from told_exit_codes import kernel_tells

from llmtrain.process.exit_code import exit_codes

PARENT = """
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)       # as Ray's: the kernel forgets the child at once
child = subprocess.Popen([sys.executable, "-c", "import os; input(); " + sys.argv[1]])
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(not kernel_tells(), reason="needs Linux 6.15")
@pytest.mark.parametrize(
    ("end", "code"), [("os._exit(9)", 9), ("os._exit(0)", 0), ("os.kill(os.getpid(), 11)", -11), ("input()", 1)]
)
def test_the_end_of_a_grandchild(end, code):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, end], **pipes)
    with parent, exit_codes({7: int(parent.stdout.readline())}) as code_of:
        parent.stdin.write("\n")
        parent.stdin.close()
        parent.wait()
        assert code_of(7) == code
        assert code_of(8) is None


def test_the_code_of_a_process_that_runs_or_is_gone_is_unknown(monkeypatch):
    monkeypatch.setattr("llmtrain.process.exit_code.WAIT", 0.1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with exit_codes({0: os.getpid(), 1: gone.pid}) as code_of:
        assert (code_of(0), code_of(1)) == (None, None)
