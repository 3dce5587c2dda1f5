"""Throughput of `toybandit sweep` per core; writes part of docs/benchmarks.md.

    OMP_NUM_THREADS=1 python -m benchmarks.sweep [--grid examples/grids/ten_thousand.yaml] [--dry]

One worker simulates a grid into an empty folder; CPU seconds of its process, with all starts and imports.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.fused_head import store, sweep_table

from llmtrain.kernels.timing import machine

GRID = "examples/grids/ten_thousand.yaml"


def measure(grid: str) -> dict[str, str | int | float]:
    """Simulate a grid; return its size and its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["sweep", "--grid", grid, "--out", folder, "--workers", "1"]
        subprocess.run([sys.executable, "-m", "toybandit", *words], check=True)
        done = pq.read_table(Path(folder, "sweep.parquet"), columns=["rollouts", "passes"])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    updates = pc.sum(pc.multiply(done["rollouts"], done["passes"])).as_py()
    cpu = round(used.ru_utime + used.ru_stime, 1)
    return {"grid": grid, "machine": machine("cpu", 1), "runs": done.num_rows, "updates": updates, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", default=GRID)
    parser.add_argument("--dry", action="store_true", help="print only")
    given = parser.parse_args()
    found = measure(given.grid)
    print(sweep_table(found))
    if not given.dry:
        store({"sweep": found})


if __name__ == "__main__":
    main()
