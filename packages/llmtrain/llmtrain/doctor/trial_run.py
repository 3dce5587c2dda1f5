"""Short training in a separate process, with the measurements from its log."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from entrostat.logs.runlog import read_metrics
from entrostat.settings.plain_yaml import dump_yaml

from ..process.text import one_line

PHASES = {
    "rollout": ("rollout", "verify", "idle"),
    "training": ("forward", "backward", "optimizer", "plan", "reference", "other"),
    "weight sync": ("sync",),
}
"""Phases of `llmtrain plan`, with the clock phases that each contains."""
POLL = 0.2
"""Seconds between checks of a run."""


class Failed(RuntimeError):
    """Failure of a part, with the reason in one line."""


@dataclass(frozen=True)
class Outcome:
    """Result of a command."""

    code: int
    said: str
    """Last line of its output."""


def llmtrain(arguments: list[str], limit: float, watch: Any = None) -> Outcome:
    """Run `llmtrain ARGUMENTS...` in its own session, and leave no process behind.

    watch: called with the process id while the command runs, until it returns True. Raises Failed after `limit`
    seconds.
    """
    command = [sys.executable, "-m", "llmtrain.doctor.guard", str(limit), sys.executable, "-m", "llmtrain", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        if watch:
            while process.poll() is None and not watch(process.pid):
                time.sleep(POLL)
        said, _ = process.communicate()
    lines = [line for line in said.splitlines() if line.strip()] or [""]
    if process.returncode == 124:
        raise Failed(f"not finished within {limit:g} s; last output: {one_line(lines[-1])}")
    return Outcome(process.returncode, one_line(lines[-1], 400))


def train(settings: Mapping[str, Any], limit: float, watch: Any = None) -> Outcome:
    """Train with these settings, written to a YAML file next to the run folder `out`."""
    out = Path(settings["out"])
    out.parent.mkdir(parents=True, exist_ok=True)
    file = out.with_suffix(".yaml")
    file.write_text(dump_yaml(dict(settings)))
    return llmtrain(["train", "--config", str(file), "--overwrite"], limit, watch)


def measured(out: str | Path, steps: int) -> dict[str, Any]:
    """Return measurements from the log of a finished run: medians over the steps after the first, which warms up.

    Raises Failed if steps are missing.
    """
    lines = [line for line in read_metrics(out) if "time/step" in line]
    if len(lines) < steps:
        raise Failed(f"{out} has {len(lines)} of {steps} steps")
    later = lines[1:] or lines

    def middle(key: str) -> float:
        return median(line.get(key, 0.0) for line in later)

    return {
        "seconds": {name: sum(middle(f"time/{part}") for part in parts) for name, parts in PHASES.items()},
        "step_seconds": middle("time/step"),
        "tokens_per_second_per_gpu": middle("tokens_per_second_per_gpu"),
        "response_length": middle("response_length"),
        "entropy": [line["entropy"] for line in lines],
        "grad_norm": [line["grad_norm"] for line in lines],
        "mismatch": {key: max(abs(line[key]) for line in lines) for key in lines[0] if key.startswith("mismatch/")},
        "memory_gib": {key: max(line[key] for line in lines) for key in lines[0] if key.startswith("memory/")},
    }


def steps_done(out: str | Path) -> int:
    """Return the number of steps in the log of a run, which may still be running."""
    with contextlib.suppress(OSError, ValueError):
        return sum("time/step" in line for line in read_metrics(out))
    return 0


def kill_engine(pid: int) -> bool:
    """Kill a rollout engine among the descendants of process `pid` with SIGKILL, and return whether there was one."""
    engines = [child for child in below(pid) if any(name in _title(child) for name in ("RolloutActor", "EngineCore"))]
    for engine in engines[:1]:
        os.kill(engine, signal.SIGKILL)
    return bool(engines)


def below(pid: int) -> list[int]:
    """Return all descendants of a process, on Linux."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(stat.parent.name))
    found = list(parents.get(pid, []))
    for child in found:  # grows during the loop
        found += parents.get(child, [])
    return found


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
