"""Commands from a plan to its run: write the settings, try ten steps, train."""

import shlex
from typing import Any

from llmtrain.plan.cost import RunPlan
from llmtrain.plan.handover import train_settings
from llmtrain.plan.plan_config import in_words

from .asked import Asked

SLURM, RAY, HERE = "Slurm", "Ray", "this machine"
PLACES = (SLURM, RAY, HERE)
FILE = "run.yaml"
SMOKE = "-smoke"
"""End of the name of the run that tries ten steps."""
SMOKE_STEPS = 10
DASHBOARD = "http://127.0.0.1:8265"
CPUS, MEMORY = 16, 200
"""CPUs and GB of host memory per GPU that a part of a Slurm node is asked for."""
MODEL, DATA = "MODEL", "QUESTIONS.parquet"


def plan_command(asked: Asked) -> str:
    """Return the `llmtrain plan` command that writes the settings of the plan."""
    config = asked.plan.config
    words = ["llmtrain", "plan", *(["--recipe", asked.recipe] if asked.recipe else [])]
    words += ["--gpu", config.gpu, "--gpus", str(config.gpus)]
    changes = {key: value for key, value in asked.changes.items() if key not in ("gpu", "gpus")}
    words += ["--set", *in_words(changes).split(" ")] if changes else []
    return shlex.join([*words, "--write", FILE])


def run_command(plan: RunPlan, place: str, name: str, *, smoke: bool = False) -> str:
    """Return the command that trains with the settings in FILE, or tries ten steps of it. place: one of PLACES."""
    folder = "/mnt/" if place == RAY else ""
    out = f"{folder}runs/{name}{SMOKE if smoke else ''}"
    flags = ["--model.path", f"{folder}{MODEL}", "--data.train-files", f"{folder}{DATA}", "--out", out]
    flags += ["--steps", str(SMOKE_STEPS), "--save-every", str(SMOKE_STEPS)] if smoke else []
    starts = {
        SLURM: ["sbatch", *_slurm(plan), "examples/slurm.sh", FILE],
        RAY: ["examples/ray_job.sh", DASHBOARD, FILE],
        HERE: ["llmtrain", "train", "--config", FILE],
    }
    return shlex.join([*starts[place], *flags])


def _slurm(plan: RunPlan) -> list[str]:
    """Return sbatch's flags for the plan's GPUs: whole nodes, or a part of one."""
    config = plan.config
    if config.gpus < config.gpus_per_node:
        part = ["--cpus-per-task", str(CPUS * config.gpus), "--mem", f"{MEMORY * config.gpus}G"]
        return ["--gpus-per-node", str(config.gpus), *part]
    nodes = ["--nodes", str(plan.layout.nodes)] if plan.layout.nodes > 1 else []
    return [*nodes, "--gpus-per-node", str(config.gpus_per_node), "--exclusive", "--mem", "0"]


def settings_of(asked: Asked) -> dict[str, Any]:
    """Return the trainer's settings for the plan. Raises ValueError for ZeRO 0."""
    return train_settings(asked.plan, asked.preset)
