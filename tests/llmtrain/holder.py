"""A process that trains in a folder, as far as its lock is concerned, and has forked another."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SCRIPT = """
import os, sys, time
from llmtrain.training.run import claim
with claim(sys.argv[1]):
    child = os.fork()
    if child:
        print(child, flush=True)
    time.sleep(300)
"""


@contextmanager
def held(folder: object) -> Iterator[tuple[subprocess.Popen, int]]:
    """Hold a folder; gives the process and the number of its child."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    child = int(process.stdout.readline())
    try:
        yield process, child
    finally:
        process.kill()
        process.wait()
        os.kill(child, signal.SIGKILL)
        process.stdout.close()
