"""Cores that a process may use, and how its threads wait."""

import os
import subprocess
import sys

import pytest

from llmtrain.process import cores
from llmtrain.process.cores import cpus, quotas, threads_that_help, wait_briefly


@pytest.mark.parametrize(
    ("files", "group", "expected"),
    [
        ({"cpu.max": "max 100000"}, "0::/", []),
        ({"cpu.max": "250000 100000"}, "0::/", [2.5]),
        ({"cpu.max": "max 100000", "pod/cpu.max": "400000 100000"}, "0::/pod/worker", [4.0]),
        ({"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n"}, "4:cpu,cpuacct:/", [1.5]),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, "4:cpu,cpuacct:/", []),
        ({"cpu.max": "nonsense"}, "0::/", []),
        ({}, "", []),
    ],
)
def test_a_container_may_have_fewer_cores_than_its_machine(files, group, expected, tmp_path):
    root, mine = tmp_path / "cgroup", tmp_path / "mine"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    mine.write_text(group + "\n")
    assert quotas(root, mine) == expected


@pytest.mark.parametrize(("limits", "expected"), [([1.5], 1), ([0.25], 1), ([], None), ([1e6], None)])
def test_a_quota_counts_in_whole_cores(limits, expected, monkeypatch):
    monkeypatch.setattr(cores, "quotas", lambda: limits)
    assert cpus() == (expected or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("layer", "rows", "expected"),
    [(10_000, 256, 1), (40_000, 64, 1), (40_000, 256, 2), (165_000, 64, 2), (165_000, 256, 8), (3_500_000, 64, 44)],
)
def test_a_small_model_has_as_many_threads_as_help(layer, rows, expected):
    """The first four as measured on two cores."""
    assert threads_that_help(layer, rows) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "1000"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None), ({"GOMP_SPINCOUNT": "5"}, "5")],
)
def test_threads_spin_briefly_unless_told_otherwise(given, expected, monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    wait_briefly()
    found = os.environ.get("GOMP_SPINCOUNT")
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    assert found == expected


def test_a_command_decides_before_torch_is_there():
    code = "import llmtrain.cli, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
