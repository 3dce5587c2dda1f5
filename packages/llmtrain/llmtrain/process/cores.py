"""Processor cores for this process: how many it may use, and whether others use them.

A thread of OpenMP that has no work spins, so that it can go on at once. Where another process needs its core, all other
threads then wait for it: on two cores of which one was taken, a training step of the small model took 1.8 times as
long as with threads that sleep; where both were free, sleeping cost a third (`python -m benchmarks.waiting`).
"""

import os
import time
from pathlib import Path

POLICY = "OMP_WAIT_POLICY"
"""Environment variable by which OpenMP's threads sleep (PASSIVE) or spin; it is read when torch is imported."""
LOOK = 0.06
"""Seconds during which other processes are looked at."""
TAKEN = 0.5
"""Cores that others use from which on threads sleep."""
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


def taken() -> float:
    """Return the cores that other processes use at present; 0 where the system does not tell (Linux does)."""
    try:
        before, mine, since = _busy(), time.process_time(), time.perf_counter()
        time.sleep(LOOK)
        spent = time.perf_counter() - since
        return max(0.0, (_busy() - before - (time.process_time() - mine)) / spent)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _busy() -> float:
    """Return the seconds for which the machine's cores have worked since its start."""
    user, nice, system, _, _, irq, softirq, steal, *_ = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / os.sysconf("SC_CLK_TCK")


def sleep_if_shared() -> None:
    """Let OpenMP's threads sleep while they wait if others use this machine too. Call before torch is imported."""
    alone = os.environ.get("OMP_NUM_THREADS") == "1" or cpus() == 1
    if not alone and POLICY not in os.environ and "GOMP_SPINCOUNT" not in os.environ and taken() > TAKEN:
        os.environ[POLICY] = "PASSIVE"
