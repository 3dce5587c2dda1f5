"""Plan that is asked for: a recipe or one's own run, on GPUs, made to fit, with free memory if wanted."""

from dataclasses import dataclass, replace
from typing import Any

from llmtrain.plan.cost import RunPlan, make_plan
from llmtrain.plan.fixes import find_fix_on_its_gpus
from llmtrain.plan.headroom import roomier
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.plan_presets import Preset, place
from llmtrain.recipes.recipe import get_recipe


@dataclass(frozen=True)
class Asked:
    """Plan, and how it came about."""

    plan: RunPlan
    recipe: str
    """Name of the recipe; empty for one's own run."""
    preset: Preset | None
    """The recipe on these GPUs; None for one's own run."""
    fix: dict[str, Any]
    """Change that was needed to make the run fit."""

    @property
    def changes(self) -> dict[str, Any]:
        """Settings of the plan that differ from the recipe on these GPUs, or from the defaults."""
        before = vars(self.preset.config if self.preset else PlanConfig())
        return {key: value for key, value in vars(self.plan.config).items() if value != before[key]}


def ask(recipe: str, gpu: str, gpus: int, settings: dict[str, Any], room: bool) -> Asked:
    """Return the plan of a recipe, or of one's own run if `recipe` is empty, with changed settings.

    room: leave memory free, if the plan leaves too little and can leave more. A run that does not fit gets the fix that
    `llmtrain plan` names, unless that takes other GPUs. Raises ValueError in one line if nothing makes it fit.
    """
    preset = place(get_recipe(recipe), gpus, gpu) if recipe else None
    config = replace(preset.config if preset else PlanConfig(gpu=gpu, gpus=gpus), **settings)
    plan, fix = _fitting(config)
    if room and (other := roomier(plan)):
        plan = other
    return Asked(plan, recipe, preset, fix)


def _fitting(config: PlanConfig) -> tuple[RunPlan, dict[str, Any]]:
    try:
        return make_plan(config), {}
    except ValueError:
        fix = find_fix_on_its_gpus(config)
        if not fix:
            raise
        return make_plan(replace(config, **fix)), fix
