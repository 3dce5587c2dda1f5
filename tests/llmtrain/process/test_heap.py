"""Freed memory of a process: kept for its next allocations, and given back every few steps."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
FAULTS = """
import resource
from llmtrain.process.heap import keep_freed_memory
{before}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bytearray(b"x") * (48 << 20)  # above 32 MiB, up to which glibc learns to keep blocks
begun = faults()
for _ in range(5):
    bytearray(b"x") * (48 << 20)
print(faults() - begun)
"""
HELD = """
from llmtrain.process.heap import EVERY, give_back, keep_freed_memory
keep_freed_memory()
def pages():
    return int(open("/proc/self/statm").read().split()[1])
blocks = [bytearray(b"x") * (1 << 20) for _ in range(200)]
end = bytearray(b"x") * 1024  # the heap does not end with what is freed
full = pages()
blocks.clear()
give_back(0)
kept = pages()
give_back(EVERY - 1)
print(full, kept, pages())
"""


def printed(program: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_kept_blocks_are_filled_again_without_page_faults():
    [returned], [kept] = (printed(FAULTS.format(before=before)) for before in ("", "keep_freed_memory()"))
    assert returned > 5 * 10_000
    assert kept < returned / 100


def test_free_pages_are_given_back_every_few_steps():
    full, kept, after = printed(HELD)
    assert kept > 0.9 * full
    assert after < 0.5 * full
