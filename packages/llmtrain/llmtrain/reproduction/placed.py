"""A recipe on GPUs: its plan, and the trainer's settings that follow, without its model and data."""

from dataclasses import replace
from typing import Any, NamedTuple

from entrostat.settings.field_types import merge

from ..evaluation.paper_settings import longest_response
from ..plan.cost import RunPlan, make_plan
from ..plan.handover import train_settings
from ..plan.plan_presets import Preset, place
from ..recipes.recipe import Recipe
from ..settings.config import TrainConfig
from .asked import Asked


class Placed(NamedTuple):
    """A recipe on GPUs."""

    recipe: Recipe
    preset: Preset
    plan: RunPlan


def placed(recipe: Recipe, gpus: int, gpu: str | None) -> Placed:
    """Return a recipe on this many GPUs. Raise ValueError if it does not fit."""
    preset = place(recipe, gpus, gpu)
    return Placed(recipe, preset, make_plan(preset.config))


def placed_as_asked(asked: Asked) -> Placed:
    """Return a recipe on the GPUs asked for. Raise ValueError with the fix if it does not fit."""
    try:
        return placed(asked.recipe, asked.gpus, asked.gpu)
    except ValueError as error:
        raise ValueError(
            f"recipe {asked.recipe.name} on {asked.gpus} GPUs: {error}; try `llmtrain plan --recipe "
            f"{asked.recipe.name} --gpus N --gpu TYPE`, or --shrink for a small form of it"
        ) from None


def full_config(found: Placed) -> TrainConfig:
    """Return the settings of a recipe without its model and data; engines take its evaluations' responses too."""
    recipe, plan = found.recipe, found.plan
    settings: dict[str, Any] = train_settings(plan, found.preset)
    settings["out"] = f"runs/{recipe.name}"
    settings["eval"]["every"] = recipe.value("eval.every", 0)
    settings["checkpoint"] = {"keep_best": recipe.value("checkpoint.keep_best", "")}
    config = merge(TrainConfig(), settings)
    longest = config.data.max_prompt_length + longest_response(config)
    if longest > plan.memory.kv_tokens:
        raise ValueError(
            f"recipe {recipe.name}: a prompt and response in evaluation take {longest} tokens and the engine's "
            f"memory {plan.memory.kv_tokens:.0f}: lower --eval.max-new-tokens or plan on larger GPUs with --gpu"
        )
    return replace(config, rollout=replace(config.rollout, max_model_len=max(config.rollout.max_model_len, longest)))
