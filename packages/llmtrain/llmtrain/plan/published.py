"""Runs with a published cost, to check the cost model. None of its constants was fitted to them."""

from dataclasses import dataclass, replace
from functools import cache

from .cost import RunPlan, make_plan
from .plan_presets import get_preset

LENGTH_SHARES = (1 / 8, 1 / 4, 1 / 2)
"""Mean response as a share of the longest, in several values because no paper states it."""


@dataclass(frozen=True)
class Published:
    """Run with published GPU-hours."""

    preset: str
    gpu_hours: float
    source: str


PUBLISHED = (
    Published("qwen3-8b-64gpu", 20_000, "EntroPIC, appendix B.1: 64 H20, 2,000 steps, about 20,000 GPU-hours"),
    Published("nemotron-1.5b-64gpu", 30_000, "EntroPIC, appendix B.1: the full training, about 30,000 GPU-hours"),
)


def estimate(run: Published, length_share: float) -> RunPlan:
    """Return the plan of a published run with a mean response of `length_share` times the longest."""
    config = get_preset(run.preset).config
    return make_plan(replace(config, mean_response_length=round(config.max_response_length * length_share)))


@cache
def ratio(run: Published, length_share: float = 1 / 4) -> float:
    """Return estimated / published GPU-hours."""
    return estimate(run, length_share).gpu_hours / run.gpu_hours
