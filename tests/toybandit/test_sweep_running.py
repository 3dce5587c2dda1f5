"""Where the calls of a sweep run changes nothing of what they give."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from toybandit.sweep.cells import plan_calls
from toybandit.sweep.command import sweep
from toybandit.sweep.grid import read_cells, read_grid
from toybandit.sweep.running import run_calls

pytestmark = pytest.mark.slow

YAML = """
{seeds: 2, states: 4, rollouts: 6, env: [noisy, on], target: 0.6,
 controller: [grpo, {entropic: {tau: 0, ki: [0, 0.05]}}]}
"""


@pytest.fixture
def grid(tmp_path) -> Path:
    path = tmp_path / "grid.yaml"
    path.write_text(YAML)
    return path


def test_processes_and_batches_change_nothing(grid, tmp_path):
    cells = read_grid(grid)
    alone = sweep(cells, tmp_path / "1")
    assert sweep(cells, tmp_path / "2", workers="2") == alone
    for row, other in zip(sweep(cells, tmp_path / "3", batch=1), alone, strict=True):
        assert row["entropy_final"] == pytest.approx(other["entropy_final"], abs=1e-12)


@pytest.fixture
def begun():
    """Calls in two processes, of which the first has ended and another takes minutes."""
    calls = [call for rollouts in (1, 10**6) for call in plan_calls(read_cells({"seeds": 1, "rollouts": rollouts}), 1)]
    rows = run_calls(calls, "2")
    next(rows)
    return rows


def test_nobody_waits_for_a_call_after_an_interruption(begun):
    with pytest.raises(KeyboardInterrupt):
        begun.throw(KeyboardInterrupt)
    left = multiprocessing.active_children()
    for _ in range(600):  # the pool waits for them, too: who comes second sees no exit code for a moment
        if all(process.exitcode is not None for process in left):
            return
        time.sleep(0.1)
    pytest.fail(f"{left} go on")


def test_a_lost_process_is_told(begun):
    for process in multiprocessing.active_children():
        process.kill()
    with pytest.raises(ValueError, match="a process of the sweep crashed"):
        next(begun)


ON_RAY = """
import sys
from pathlib import Path
from toybandit.sweep.command import sweep
from toybandit.sweep.grid import read_grid
from toybandit.sweep.running import ray_cluster
with ray_cluster() as ray:
    print(*{node["NodeManagerAddress"] for node in ray.nodes()})
    sweep(read_grid(Path(sys.argv[1])), Path(sys.argv[2]), workers="ray")
print(ray.is_initialized())
"""


def test_ray_changes_nothing(grid, tmp_path):
    """In a cluster of its own, which listens at 127.0.0.1 and ends with the sweep."""
    pytest.importorskip("ray")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    command = [sys.executable, "-c", ON_RAY, str(grid), str(tmp_path / "ray")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    address, told, running_after = done.stdout.splitlines()
    assert (address, running_after) == ("127.0.0.1", "False")
    assert "12 runs, 12 of them new" in told
    sweep(read_grid(grid), tmp_path / "serial")
    found, expected = (pq.read_table(tmp_path / name / "sweep.parquet") for name in ("ray", "serial"))
    assert found.equals(expected)


def test_ray_must_be_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"ray is not installed: pip install .*ray"):
        next(run_calls(plan_calls(read_cells({"seeds": 1}), 10), "ray"))
