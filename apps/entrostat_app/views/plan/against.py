"""Plan against measured: the numbers of a plan beside those in the log of its run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from llmtrain.doctor.trial_run import Failed, measured
from llmtrain.plan.cost import RunPlan
from llmtrain.plan.gpu import GIB

from ...shared import run_folder

LARGEST = 64 * 2**20
"""Upper limit for a metrics.jsonl, bytes."""
NOT_COMPARED = ("out", "overwrite", "controller", "target", "model", "data", "steps", "save_every", "topology.address")
"""Settings that do not change what a step costs."""


def measurements(root: Path, name: str) -> dict[str, Any] | None:
    """Return the measurements of a run in `root`; None if it is not there or has no complete step.

    Raises ValueError in one line if its log cannot be read.
    """
    try:
        path = run_folder.file(root, name, "metrics.jsonl")
    except ValueError:  # not there yet
        return None
    if path is None:
        return None
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{name}/metrics.jsonl is larger than {LARGEST // 2**20} MiB")
    try:
        found = measured(path.parent, 1)
        numbers = [found["step_seconds"], *found["seconds"].values(), *found["memory_gib"].values()]
        for number in (*numbers, found["tokens_per_second_per_gpu"], found["response_length"]):
            float(number)
    except Failed:
        return None
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{name}/metrics.jsonl is not that of llmtrain train") from None
    return found


def table(plan: RunPlan, found: Mapping[str, Any]) -> pd.DataFrame:
    """Return a row for each number that a plan predicts and a run measures, and measured / plan."""
    config, seconds = plan.config, found["seconds"]
    memory = found["memory_gib"].get("memory/reserved_gib")
    rows = {
        "a step (s)": (plan.seconds, found["step_seconds"]),
        **{f"{phase} (s)": (planned, seconds[phase]) for phase, planned in plan.phases.items()},
        "response tokens per second and GPU": (
            plan.tokens_per_second / config.gpus,
            found["tokens_per_second_per_gpu"],
        ),
        "mean response (tokens)": (float(config.mean_response), found["response_length"]),
        "memory of a GPU in training (GiB)": (sum(plan.memory.training.values()) / GIB, memory),
        "the whole run (GPU-hours)": (plan.gpu_hours, found["step_seconds"] * config.steps * config.gpus / 3600),
    }
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["plan", "measured"]).astype(float)
    frame["measured / plan"] = frame["measured"] / frame["plan"]
    return frame.rename_axis("").reset_index()


def differences(settings: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return how a run's configuration differs from the plan's settings where it changes the cost of a step."""
    planned, own = run_folder.flat(settings), run_folder.flat(config)
    return [
        f"{key} is {own[key]}, planned {value}"
        for key, value in planned.items()
        if key in own and own[key] != value and not key.startswith(NOT_COMPARED)
    ]
