"""Trainer settings for a plan."""

import math
from pathlib import Path
from typing import Any

from .cost import RunPlan
from .plan_presets import Preset

SAVE_EVERY = 1800.0
"""Upper limit for planned seconds of training lost in a crash."""

MARGIN = 5
"""Timeouts as a multiple of planned seconds; published runs took up to 3.5 times their plan."""
LEAST_ROLLOUT, LEAST_WAIT = 600.0, 1800.0
"""Trainer defaults of rollout.timeout and engine.ddp_timeout (seconds), kept for short steps."""


def timeouts(plan: RunPlan) -> tuple[float, float]:
    """Return rollout.timeout and engine.ddp_timeout for a plan, in seconds, rounded up to minutes.

    Ranks wait in a collective while an engine samples, so the second timeout is longer than the first.
    """
    rollout, step = plan.rollout.total, sum(plan.phases.values())
    answer = max(LEAST_ROLLOUT, 60.0 * math.ceil(MARGIN * rollout / 60))
    return answer, max(LEAST_WAIT, 60.0 * math.ceil(MARGIN * step / 60), answer + LEAST_WAIT)


def topology(plan: RunPlan) -> dict[str, Any]:
    """Return the settings of the topology: local where each rank can hold an engine of its own, or else Ray."""
    config, layout = plan.config, plan.layout
    if layout.nodes == 1 and config.colocated and config.tensor_model_parallel_size == 1 and not config.staleness:
        return {"name": "local"}
    return {
        "name": "ray",
        "placement": "colocated" if config.colocated else "disaggregated",
        "rollout_engines": layout.engines,
        "staleness": config.staleness,
        "weight_sync": config.weight_sync,
        "address": "auto" if layout.nodes > 1 else "",
    }


def train_settings(plan: RunPlan, preset: Preset | None = None) -> dict[str, Any]:
    """Return settings for `llmtrain train --config`, without data, and without the model unless it is a folder.

    preset: adds its published settings, such as the learning rate; without a preset the learning rate is 1e-6.

    Raises ValueError for ZeRO 0, which keeps no fp32 copy of bf16 weights.
    """
    config, layout = plan.config, plan.layout
    if not config.zero_stage:
        raise ValueError("zero_stage 0 cannot be trained in bf16: use zero_stage=1")
    answer, wait = timeouts(plan)
    settings: dict[str, Any] = {
        "steps": config.steps,
        "save_every": max(min(round(SAVE_EVERY / plan.seconds), config.steps), 1),
        "controller": "grpo",
        "nproc": layout.ranks,
        "device": "cuda",
        "task": {"name": "files"},
        "data": {"max_prompt_length": config.max_prompt_length},
        "rollout": {
            "name": "vllm",
            "prompts": config.prompts,
            "n": config.n,
            "max_new_tokens": config.max_response_length,
            "partial_tokens": config.partial_tokens,
            "max_model_len": layout.longest_sequence,
            "tensor_parallel_size": config.tensor_model_parallel_size,
            "gpu_memory_utilization": math.floor(100 * plan.memory.utilization) / 100,
            "max_num_seqs": config.max_num_seqs,
            "filter_groups": config.oversampling > 1,
            "gen_batch_size": math.ceil(config.prompts * config.oversampling) if config.oversampling > 1 else 0,
            "timeout": answer,
        },
        "optim": {
            "lr": 1e-6,
            "mini_batch_size": config.mini_batch_size,
            "ppo_epochs": config.ppo_epochs,
            "micro_batch_tokens": config.micro_batch_tokens,
            "stats": config.stats,
            "layout": "packed",
        },
        "engine": {
            "name": "deepspeed",
            "bf16": True,
            "zero_stage": config.zero_stage,
            "ddp_timeout": wait,
            "gradient_checkpointing": config.gradient_checkpointing,
            "offload_optimizer": config.offload_optimizer,
            "offload_param": config.offload_param,
        },
        "topology": topology(plan),
        "eval": {"every": 0},
    }
    if Path(config.model).is_dir():
        settings["model"] = {"path": config.model}
    for key, value in (preset.trainer if preset else {}).items():
        section, dot, leaf = key.rpartition(".")
        (settings.setdefault(section, {}) if dot else settings)[leaf] = value
    if config.reward_model:
        settings["advantage"] = "prime"
    if config.reference_model and "kl_ref" not in settings["controller"]:
        settings["controller"] += "+kl_ref"
    return settings
