"""A training of a few steps in processes of its own, and what its log says."""

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

from entrostat.plain_yaml import dump_yaml
from entrostat.runlog import read_metrics

from ..process.text import one_line

PHASES = {
    "rollout": ("rollout", "verify", "idle"),
    "training": ("forward", "backward", "optimizer", "plan", "reference", "other"),
    "weight sync": ("sync",),
}
"""Phases of `llmtrain plan`, and the clock's that make them up."""
POLL = 0.2
"""Seconds between looks at a run."""


class Failed(RuntimeError):
    """A part did not do what it should; the message says why in one line."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    said: str
    """Its last line."""


def llmtrain(arguments: list[str], limit: float, watch: Any = None) -> Outcome:
    """Run `llmtrain ARGUMENTS...` in a session of its own, and leave no process of it behind.

    watch: called with the process's id while it runs. Raises Failed after `limit` seconds.
    """
    command = [sys.executable, "-m", "llmtrain.doctor.guard", str(limit), sys.executable, "-m", "llmtrain", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        if watch:
            while process.poll() is None and not watch(process.pid):
                time.sleep(POLL)
        said, _ = process.communicate()
    lines = [line for line in said.splitlines() if line.strip()] or [""]
    if process.returncode == 124:
        raise Failed(f"no end within {limit:g} s; its last words: {one_line(lines[-1])}")
    return Outcome(process.returncode, one_line(lines[-1], 400))


def train(settings: Mapping[str, Any], limit: float, watch: Any = None) -> Outcome:
    """Train with these settings, which are written beside the run's folder `out`."""
    out = Path(settings["out"])
    out.parent.mkdir(parents=True, exist_ok=True)
    file = out.with_suffix(".yaml")
    file.write_text(dump_yaml(dict(settings)))
    return llmtrain(["train", "--config", str(file), "--overwrite"], limit, watch)


def measured(out: str | Path, steps: int) -> dict[str, Any]:
    """What the log of a finished run says of its steps: medians without the first, which also warms up.

    Raises Failed when steps are missing or a loss is not finite.
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
    """Return how many steps the log of a run that is under way holds."""
    with contextlib.suppress(OSError, ValueError):
        return sum("time/step" in line for line in read_metrics(out))
    return 0


def kill_engine(pid: int) -> bool:
    """SIGKILL the process of a rollout engine below process `pid`; return whether there was one."""
    engines = [child for child in below(pid) if any(name in _title(child) for name in ("RolloutActor", "EngineCore"))]
    for engine in engines[:1]:
        os.kill(engine, signal.SIGKILL)
    return bool(engines)


def below(pid: int) -> list[int]:
    """Return all processes that descend from a process, on Linux."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(stat.parent.name))
    found = list(parents.get(pid, []))
    for child in found:  # grows while it is read
        found += parents.get(child, [])
    return found


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
