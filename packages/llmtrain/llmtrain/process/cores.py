"""Processor cores for this process: how many it may use, and how its threads wait.

A thread of OpenMP that has no work spins, so that it can go on at once. Where another process needs its core, all other
threads then wait for it. A short spin bridges the gap to the next operation and then lets the core go: on two cores of
which another process held one, a training step of the small model took 1.59 s instead of 2.74 s with libgomp's own
300,000 turns, and 1.00 s instead of 1.06 s where both were free (`python -m benchmarks.waiting`).
"""

import os
from pathlib import Path

SPINS = "GOMP_SPINCOUNT"
"""Environment variable with the turns of a waiting thread before it sleeps; it is read when torch is imported."""
TURNS = 1000
WORK = 5_000_000
"""Multiply-adds of a layer in a decoding step for each thread that helps: two threads took 1.1 times as long as one
with 2.6 million of them, .9 and .7 of its time with 10 and 42 million (`python -m benchmarks.waiting`)."""
CGROUPS = Path("/sys/fs/cgroup")


def cpus() -> int:
    """Return the number of cores that this process may use: of its affinity, and at most its group's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(int(quota) for quota in quotas())]))


def quotas(root: Path = CGROUPS, mine: Path = Path("/proc/self/cgroup")) -> list[float]:
    """Return the limits (cores) of this process's control groups, of both versions; empty without any."""
    try:
        paths = [line.split(":", 2)[2].strip("/") for line in mine.read_text().splitlines() if line.count(":") >= 2]
    except OSError:
        paths = []
    folders = {folder for path in ["", *paths] for folder in (root / path, *(root / path).parents)}
    found = []
    for folder in folders:
        if not folder.is_relative_to(root):
            continue
        for base in (folder, root / "cpu" / folder.relative_to(root)):
            try:
                if (base / "cpu.max").exists():
                    quota, period = (base / "cpu.max").read_text().split()
                else:
                    quota = (base / "cpu.cfs_quota_us").read_text().strip()
                    period = (base / "cpu.cfs_period_us").read_text().strip()
                found.append(float(quota) / float(period))
            except (OSError, ValueError):  # no limit is "max", and no file
                continue
    return [x for x in found if x > 0]


def threads_that_help(layer: int, rows: int) -> int:
    """Return an upper limit for the threads of a model: it depends on sizes alone, so that a run repeats.

    layer: weights of one of its layers. rows: responses that are decoded together.
    """
    return max(1, layer * rows // WORK)


def wait_briefly() -> None:
    """Let OpenMP's threads sleep after a short spin, unless the user has said how they wait.

    Call before torch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault(SPINS, str(TURNS))
