"""Published recipes placed on 1, 8 and 64 GPUs.

Learning settings come from the recipe (recipes/) and do not depend on the number of GPUs; the placements are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from entrostat.settings.choosing import unknown
from entrostat.settings.field_types import merge

from ..recipes.recipe import Recipe, get_recipe
from .fixes import find_fix_on_its_gpus, fits
from .plan_config import PlanConfig

PLANNED = MappingProxyType(
    {
        "steps": "steps",
        "rollout.prompts": "prompts",
        "rollout.n": "n",
        "rollout.max_new_tokens": "max_response_length",
        "data.max_prompt_length": "max_prompt_length",
        "optim.mini_batch_size": "mini_batch_size",
        "optim.ppo_epochs": "ppo_epochs",
        "optim.stats": "stats",
        "model.max_positions": "max_positions",
    }
)
"""Keys of the trainer that a plan has too, with their names there."""
INGREDIENTS = ("model.path", "data.train_files", "data.val_files", "eval.every", "checkpoint.keep_best")
"""Keys of a recipe that need files: its model, its data sets, evaluation on them, and the choice by an evaluation."""
FILTERED = 3.0
"""Prompts sampled for each one kept where groups are filtered; the first scripts of Entropy Mechanism drew as many."""
NAMES = MappingProxyType(
    {
        "qwen2.5-math-7b": "steer/qwen2.5-math-7b",
        "qwen3-8b": "entropic/qwen3-8b",
        "nemotron-1.5b": "entropic/nemotron-1.5b",
        "qwen2.5-32b": "entropy_mechanism/qwen2.5-32b-kl-cov",
    }
)
"""Recipes by the first part of a preset's name."""
SIZES = (1, 8, 64)
"""Numbers of GPUs that each of them is placed on."""


@dataclass(frozen=True)
class Preset:
    """Recipe placed on a number of GPUs."""

    config: PlanConfig
    source: str
    """Source of the values."""
    trainer: Mapping[str, Any]
    """Published settings without a key in PlanConfig, under the trainer's keys."""


def place(recipe: Recipe, gpus: int | None = None, gpu: str | None = None) -> Preset:
    """Return a recipe on `gpus` GPUs of type `gpu`; None takes those of the recipe.

    Without a placement in the recipe for this number, the first change that makes it fit is taken, if there is one.
    """
    count = gpus or recipe.gpus
    usual = recipe.placement.get(recipe.gpus, {"gpu": "h100"})
    own = recipe.placement.get(count, {"gpu": usual["gpu"]})
    asked = {} if gpu is None else {"gpu": gpu}
    config = merge(PlanConfig(), _learning(recipe) | {"gpus": count} | dict(own) | asked)
    if (count not in recipe.placement or gpu) and not fits(config):
        config = replace(config, **find_fix_on_its_gpus(config))
    known = {*PLANNED, *INGREDIENTS}
    trainer = {key: value.value for key, value in recipe.values.items() if key not in known}
    source = f"{recipe.paper}; llmtrain recipes show {recipe.name} names the source of each"
    return Preset(config, source, trainer)


def _learning(recipe: Recipe) -> dict[str, Any]:
    """Return the keys of a plan that follow from a recipe's settings."""
    settings = {key: recipe.values[name].value for name, key in PLANNED.items() if name in recipe.values}
    filtered = recipe.value("rollout.filter_groups", False)
    return settings | {
        "model": recipe.model.rpartition("/")[2],
        "oversampling": FILTERED if filtered else 1.0,
        "reference_model": "kl_ref" in recipe.value("controller"),
        "reward_model": recipe.value("advantage", "grpo") == "prime",
    }


PRESETS = {f"{name}-{gpus}gpu": place(get_recipe(recipe), gpus) for name, recipe in NAMES.items() for gpus in SIZES}
"""The presets of `llmtrain plan` by name."""


def get_preset(name: str) -> Preset:
    """Return the preset called `name`. Raises ValueError with the known names if it is unknown."""
    if name not in PRESETS:
        raise ValueError(unknown("preset", name, PRESETS))
    return PRESETS[name]
