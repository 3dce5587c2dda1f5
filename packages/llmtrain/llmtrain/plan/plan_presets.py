"""Published recipes on 1, 8 and 64 GPUs.

Learning settings come from the papers and do not depend on the number of GPUs; the placements are ours.
"""

from dataclasses import dataclass, replace
from typing import Any

from .plan_config import PlanConfig


@dataclass(frozen=True)
class Preset:
    """Recipe placed on a number of GPUs."""

    config: PlanConfig
    source: str
    """Source of the values."""
    trainer: dict[str, Any]
    """Published settings without a key in PlanConfig, under the trainer's keys."""


@dataclass(frozen=True)
class Recipe:
    """Values of a paper, with a placement for each number of GPUs."""

    config: PlanConfig
    source: str
    trainer: dict[str, Any]
    placements: dict[int, dict[str, Any]]


ADAMW_1E6 = {"optim.lr": 1e-6}
RECIPES = {
    "qwen2.5-math-7b": Recipe(
        PlanConfig(
            model="Qwen2.5-Math-7B",
            mini_batch_size=32,
            steps=200,
            max_prompt_length=1024,
            max_response_length=3072,
        ),
        "STEER, appendix D.2: DAPO-Math-17k, 512 prompts × 8, updates of 32 prompts, 1,024 + 3,072 tokens, at most 200 "
        "rollout steps, H20",
        ADAMW_1E6 | {"rollout.temperature": 1.0, "controller": "steer"},
        {
            1: {"gpu": "h200", "offload_optimizer": True},
            8: {"gpu": "h100"},
            64: {"gpu": "h20", "gradient_checkpointing": False, "micro_batch_tokens": 8192},
        },
    ),
    "qwen3-8b": Recipe(
        PlanConfig(
            model="Qwen3-8B-Base",
            mini_batch_size=512,
            steps=2000,
            max_prompt_length=2048,
            max_response_length=8192,
        ),
        "EntroPIC, section 5.1 and appendix B.1, on-policy: DAPO-Math-17k with two more data sets, 512 prompts × 8, "
        "2,048 + 8,192 tokens, 2,000 rollout steps, 64 H20",
        ADAMW_1E6 | {"rollout.temperature": 0.6, "controller": "entropic", "target": 0.1},
        {
            1: {"gpu": "h200", "offload_optimizer": True},
            8: {"gpu": "h100"},
            64: {"gpu": "h20"},
        },
    ),
    "nemotron-1.5b": Recipe(
        PlanConfig(
            model="OpenReasoning-Nemotron-1.5B",
            mini_batch_size=512,
            steps=2000,
            max_prompt_length=2048,
            max_response_length=32768,
            zero_stage=1,
        ),
        "EntroPIC, appendix B.1, reasoning model: Polaris, 2,048 + 32,768 tokens, other settings as for its 8B model, "
        "64 H20; the number of steps is not stated for this run; 2,000 is assumed here too",
        ADAMW_1E6 | {"rollout.temperature": 1.0, "controller": "entropic", "target": 0.4},
        {1: {"gpu": "h100"}, 8: {"gpu": "h100"}, 64: {"gpu": "h20"}},
    ),
    "qwen2.5-32b": Recipe(
        PlanConfig(
            model="Qwen2.5-32B",
            prompts=256,
            mini_batch_size=32,
            steps=300,
            max_prompt_length=1024,
            max_response_length=8192,
            oversampling=2.0,
            zero_stage=3,
        ),
        "Entropy Mechanism, appendices F.2 and B.1: DAPO-Math-17k, 256 prompts × 8, 8 updates a rollout, 8,192 tokens, "
        "2,400 gradient steps; prompts whose responses are all right or all wrong are filtered out; the number of "
        "extra samples is not published, so two batches (oversampling 2) are assumed, the minimum that can replace "
        "filtered prompts; the prompt limit is not stated",
        {
            "optim.lr": 5e-7,
            "rollout.temperature": 1.0,
            "rollout.filter_groups": True,
            "controller": "kl_cov",
            "controller_args": {"k": 2e-4},
        },
        {
            1: {"gpu": "h200", "offload_optimizer": True, "offload_param": True},
            8: {"gpu": "h200", "tensor_model_parallel_size": 2},
            64: {"gpu": "h100", "tensor_model_parallel_size": 4},
        },
    ),
}


def _presets() -> dict[str, Preset]:
    return {
        f"{name}-{gpus}gpu": Preset(replace(recipe.config, gpus=gpus, **placement), recipe.source, recipe.trainer)
        for name, recipe in RECIPES.items()
        for gpus, placement in recipe.placements.items()
    }


PRESETS = _presets()


def get_preset(name: str) -> Preset:
    """Return the preset called `name`. Raises ValueError with the known names if it is unknown."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; choose from {', '.join(PRESETS)}")
    return PRESETS[name]
