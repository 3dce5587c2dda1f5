"""Parts of the first hour. Each returns its measurements, or raises Failed or Skip with the reason."""

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..plan.cost import RunPlan, make_plan
from ..plan.fixes import find_fix_on_its_gpus
from ..plan.gpu import GIB, GPUS
from ..plan.handover import train_settings
from ..plan.plan_config import PlanConfig
from . import shapes, trial_run
from .checks import Skip
from .trial_run import Failed

STEPS = 5
"""Steps of each training."""
LIMIT = {"cpu": 300.0, "cuda": 1800.0}
"""Time limit of a training (seconds)."""
CPU_ENTROPY = 1e-3
"""Upper limit for the relative difference of the first step's entropy between GPU and CPU."""


@dataclass(frozen=True)
class Machine:
    """Machine that runs the parts."""

    device: str
    gpus: int
    """Number of GPUs; 0 on a CPU."""
    kind: str
    """GPU type in `llmtrain plan`; h100 on a CPU and for unknown GPUs."""
    known: bool
    """True if `kind` is the type of this machine's GPUs, so that predictions apply to it."""
    folder: Path
    """Folder for models and runs."""
    small: Path | None = None
    """Folder of a small model, instead of one with random weights."""
    large: Path | None = None
    """Folder of a large model, instead of one with random weights."""
    rollout: str = "vllm"
    """Rollout engine: vllm or hf."""

    @staticmethod
    def here(device: str, folder: Path, **options: Any) -> "Machine":
        if device == "cpu":
            return Machine("cpu", 0, "h100", False, folder, **options)
        name = torch.cuda.get_device_name().lower()
        kind = next((kind for kind in ("h200", "h100", "h20", "a100") if kind in name), "")
        return Machine("cuda", torch.cuda.device_count(), kind or "h100", bool(kind), folder, **options)

    @property
    def memory(self) -> float:
        """Memory of a GPU (GiB)."""
        return torch.cuda.get_device_properties(0).total_memory / GIB

    def model(self, shape: shapes.Shape) -> Path:
        """Return the folder of the user's model, or of a model of this shape with random weights."""
        own = {shapes.SMALL: self.small, shapes.LARGE: self.large}[shape]
        if own is not None:
            return own
        if self.device == "cpu":
            return shapes.build(shapes.TINY, self.folder / "models/tiny", "cpu", torch.float32)
        return shapes.build(shape, self.folder / "models" / shape.name, "cuda", torch.bfloat16)


def doctor(machine: Machine) -> dict[str, Any]:
    """Run `llmtrain doctor --gpu` and the torch and ray checks of `llmtrain doctor`. Raises Failed if one fails."""
    from rich.console import Console

    from .findings import CHECKS, examine_all, gpu_checks

    quiet = Console(quiet=True)
    general = [check for check in CHECKS if check.name in ("torch", "ray")]
    engines = [check for check in gpu_checks(machine.device) if check.package != "vllm" or machine.rollout == "vllm"]
    findings = examine_all([*general, *engines], quiet)
    lost = [found for found in findings if not found.works and found.verdict != "skipped"]
    if lost:
        raise Failed("; ".join(f"{found.name} {found.verdict}: {found.cause}; {found.fix}" for found in lost))
    return {found.name: found.detail or f"skipped: {found.cause}" for found in findings}


def small(machine: Machine) -> dict[str, Any]:
    """Train a 0.5B model for five steps in local processes, and return predictions and measurements."""
    settings = _small_settings(machine, "small")
    return _predicted_and_measured(machine, _small_plan(machine, 1), settings)


def small_on_ray(machine: Machine) -> dict[str, Any]:
    """Do the same on Ray, with learners and rollout engines as actors; on two GPUs if available."""
    ranks = 2 if machine.gpus != 1 else 1
    settings = _small_settings(machine, "small-ray", ranks)
    settings["topology"] = {"name": "ray", "rollout_engines": ranks if machine.gpus else 1}
    return _predicted_and_measured(machine, _small_plan(machine, ranks), settings)


def large(machine: Machine) -> dict[str, Any]:
    """Train a 7B model for five steps, configured as by `llmtrain plan --write` for this machine."""
    if machine.gpus and not machine.known:
        raise Skip(f"llmtrain plan does not support this GPU, only {', '.join(GPUS)}")
    folder = machine.model(shapes.LARGE)
    tokens, prompts = (16, 4) if machine.device == "cpu" else (1024, 64)
    config = PlanConfig(
        model=str(folder),
        gpu=machine.kind,
        gpus=machine.gpus or 1,
        gpus_per_node=max(machine.gpus, 1),
        prompts=prompts,
        n=8 if machine.gpus else 4,
        mini_batch_size=prompts // 2,
        steps=STEPS,
        max_prompt_length=64,
        mean_prompt_length=24,
        max_response_length=tokens,
        mean_response_length=tokens - 1,
    )
    try:
        plan = make_plan(config)
    except ValueError as error:
        fix = find_fix_on_its_gpus(config)
        if not fix:
            raise Skip(str(error)) from None
        plan = make_plan(replace(config, **fix))
    held, here = plan.memory.host + plan.memory.loading, host_memory()
    if held > here:
        raise Skip(f"{held / GIB:.0f} GiB of host memory are needed, but this machine has {here / GIB:.0f}")
    settings = train_settings(plan) | {
        "out": str(machine.folder / "runs/large"),
        "model": {"path": str(folder)},
        "task": {"train_problems": 256, "test_problems": 0},
        "data": {},
        "controller": "entropy_bonus",
        "device": machine.device,
        "save_every": STEPS,
    }
    if machine.device == "cpu":
        settings |= {"threads": 1}
        settings["engine"] |= {"bf16": False}
        settings["rollout"] |= {"kv_cache_gib": 0.25}
    settings["rollout"] |= {"name": machine.rollout}
    return _predicted_and_measured(machine, plan, settings)


def kill_and_resume(machine: Machine) -> dict[str, Any]:
    """Kill a rollout engine after two steps. The error must name it and the last checkpoint, and resume must work."""
    if machine.rollout == "hf":
        raise Skip("hf has no engine to kill: it needs vllm")
    settings = _small_settings(machine, "killed") | {"save_every": 1}
    settings["topology"] = {"name": "ray"}
    out = settings["out"]
    killed = False

    def watch(pid: int) -> bool:
        nonlocal killed
        killed = trial_run.steps_done(out) >= 2 and trial_run.kill_engine(pid)
        return killed

    ended = trial_run.train(settings, LIMIT[machine.device], watch)
    if not killed:
        raise Failed(f"the run ended before its engine could be killed: {ended.said}")
    if ended.code != 1 or "rollout engine" not in ended.said or "checkpoint" not in ended.said:
        raise Failed(f"exit code {ended.code}, and no engine or checkpoint named in {ended.said!r}")
    done = trial_run.steps_done(out)
    resumed = trial_run.llmtrain(["resume", out], LIMIT[machine.device])
    if resumed.code:
        raise Failed(f"resume: {resumed.said}")
    found = trial_run.measured(out, STEPS)
    return {"killed_after_steps": done, "said": ended.said, "entropy": found["entropy"]}


def against_cpu(machine: Machine) -> dict[str, Any]:
    """Train with the same seed on this device and the CPU; the entropies of the first step must agree."""
    model = shapes.build(shapes.TINY, machine.folder / "models/tiny", "cpu", torch.float32)
    entropy = {}
    for name, place in (("on-cpu", "cpu"), ("here", machine.device)):
        settings = _settings(machine, name, model) | {"device": place, "steps": 2, "save_every": 2}
        settings["rollout"] |= {"name": "hf"}
        _trained(machine, settings)
        entropy[name] = trial_run.measured(settings["out"], 2)["entropy"]
    here, there = entropy["here"][0], entropy["on-cpu"][0]
    if not abs(here / there - 1) <= CPU_ENTROPY:
        raise Failed(f"the first step's entropy is {here:.6g} on this device and {there:.6g} on the CPU")
    return {"entropy": entropy}


def kernels(machine: Machine) -> dict[str, Any]:
    """Compare the fused head with dense torch and other libraries: time, memory and error."""
    from ..kernels import timing as bench

    if machine.device == "cpu":
        todo = [bench.Case(name, 128, 64, 2000) for name in ("dense torch", "fused")]
    else:
        todo = [case for case in bench.cases("cuda") if case.tokens * case.vocabulary * 10 < machine.memory * GIB]
    results = list(bench.measure(todo, turns=1 if machine.device == "cpu" else 3))
    failed = [f"{bench.label(case)}: {result}" for case, result in results if isinstance(result, str)]
    if any(case.name in ("dense torch", "fused") and isinstance(result, str) for case, result in results):
        raise Failed("; ".join(failed))
    return bench.report(results, bench.machine(machine.device), len(results))


PARTS: dict[str, Callable[[Machine], dict[str, Any]]] = {
    "doctor": doctor,
    "small": small,
    "small-ray": small_on_ray,
    "large": large,
    "kill": kill_and_resume,
    "cpu": against_cpu,
    "kernels": kernels,
}
"""Parts by name, in an order in which early failures explain later ones."""


def host_memory() -> int:
    """Return the bytes of host memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# Trainings ----------------------------------------------------------------------------------------------------------


def _settings(machine: Machine, name: str, model: Path) -> dict[str, Any]:
    """Return settings of a short training in which every token has a gradient, whatever the rewards."""
    on_gpu = machine.device == "cuda"
    return {
        "out": str(machine.folder / "runs" / name),
        "steps": STEPS,
        "save_every": STEPS,
        "device": machine.device,
        "threads": 0 if on_gpu else 1,
        "model": {"path": str(model)},
        "task": {"train_problems": 256, "test_problems": 0},
        "eval": {"every": 0},
        "controller": "entropy_bonus",
        "optim": {"lr": 1e-6, "mini_batch_size": 16 if on_gpu else 2, "layout": "packed", "micro_batch_tokens": 8192},
        "rollout": {
            "name": machine.rollout,
            "prompts": 32 if on_gpu else 4,
            "n": 8 if on_gpu else 4,
            "max_new_tokens": 256 if on_gpu else 16,
            "max_model_len": 512 if on_gpu else 128,
            "gpu_memory_utilization": 0.4,
            "kv_cache_gib": 0.25,
        },
    }


def _small_settings(machine: Machine, name: str, ranks: int = 1) -> dict[str, Any]:
    settings = _settings(machine, name, machine.model(shapes.SMALL)) | {"nproc": ranks}
    return settings | {"engine": {"name": "deepspeed", "zero_stage": 1, "bf16": machine.device == "cuda"}}


def _small_plan(machine: Machine, ranks: int) -> RunPlan:
    """Return the plan of `_small_settings`."""
    settings = _small_settings(machine, "plan", ranks)
    rollout, optim = settings["rollout"], settings["optim"]
    return make_plan(
        PlanConfig(
            model=settings["model"]["path"],
            gpu=machine.kind,
            gpus=ranks,
            gpus_per_node=ranks,
            prompts=rollout["prompts"],
            n=rollout["n"],
            mini_batch_size=optim["mini_batch_size"],
            steps=STEPS,
            max_prompt_length=64,
            mean_prompt_length=24,
            max_response_length=rollout["max_new_tokens"],
            mean_response_length=rollout["max_new_tokens"] - 1,
            micro_batch_tokens=optim["micro_batch_tokens"],
            zero_stage=1,
            gradient_checkpointing=False,
            gpu_memory_utilization=rollout["gpu_memory_utilization"],
        )
    )


def _trained(machine: Machine, settings: dict[str, Any]) -> None:
    """Train to the end. Raises Failed with the cause if the training fails."""
    ended = trial_run.train(settings, LIMIT[machine.device])
    if ended.code:
        raise Failed(f"exit code {ended.code}: {ended.said}")


def _predicted_and_measured(machine: Machine, plan: RunPlan, settings: dict[str, Any]) -> dict[str, Any]:
    """Train, and return the plan's predictions and the measurements."""
    _trained(machine, settings)
    found = trial_run.measured(settings["out"], settings["steps"])
    training = found["seconds"]["training"]
    flops = 6 * plan.layout.model.params * plan.layout.tokens * plan.config.ppo_epochs
    peak = plan.layout.gpu.flops * plan.layout.ranks
    return {
        "predicted_for": plan.layout.gpu.name + ("" if machine.known else ", in place of this device"),
        "gpus": plan.config.gpus,
        "predicted": {
            "seconds": plan.phases,
            "step_seconds": plan.seconds,
            "tokens_per_second_per_gpu": plan.tokens_per_second / plan.config.gpus,
            "memory_gib": sum(plan.memory.training.values()) / GIB,
            "share_of_peak": plan.train_utilisation,
        },
        "measured": found | {"share_of_peak": flops / (peak * training) if training else math.nan},
        "model": asdict(plan.layout.model),
    }
