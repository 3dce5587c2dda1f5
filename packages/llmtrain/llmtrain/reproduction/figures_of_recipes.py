"""Numbers of all recipes: estimated cost, and the page docs/recipes.md. No torch."""

from functools import cache

from ..plan.cost import RunPlan, make_plan
from ..plan.plan_presets import place
from ..recipes.recipe import Recipe, get_recipe


@cache
def plan_of(name: str) -> RunPlan:
    """Return the plan of a recipe on its own number of GPUs."""
    return make_plan(place(get_recipe(name)).config)


def hours_in_words(recipe: Recipe) -> str:
    """Return the estimated GPU-hours of a recipe on its GPUs."""
    plan = plan_of(recipe.name)
    return f"{plan.gpu_hours:,.0f} on {plan.config.gpu}"
