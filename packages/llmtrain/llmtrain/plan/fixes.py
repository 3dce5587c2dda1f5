"""What to change when a configuration does not fit: the first change that helps, or the fewest taken together."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .config import PlanConfig
from .layout import lay_out
from .memory import Memory

Change = dict[str, Any]


def changes(config: PlanConfig) -> Iterator[Change]:
    """Changes that save memory, those that cost least time first. None changes what is learnt."""
    if config.gpu_memory_utilization is not None:
        free = Memory(lay_out(replace(config, gpu_memory_utilization=None))).utilization
        yield {"gpu_memory_utilization": max(math.floor(100 * free) / 100, 0.01)}
    yield from ({"zero_stage": stage} for stage in range(config.zero_stage + 1, 4))
    if not config.gradient_checkpointing:
        yield {"gradient_checkpointing": True}
    longest = config.max_prompt_length + config.max_response_length
    if config.micro_batch_tokens > longest:
        yield {"micro_batch_tokens": longest}
    yield from ({"tensor_model_parallel_size": x} for x in (2, 4, 8) if x > config.tensor_model_parallel_size)
    if not config.offload_optimizer:
        yield {"zero_stage": max(config.zero_stage, 2), "offload_optimizer": True}
    if not config.offload_param:
        yield {"zero_stage": 3, "offload_optimizer": True, "offload_param": True}
    gpus = config.gpus
    while gpus < 1024:
        gpus *= 2
        yield {"gpus": gpus}
    yield {"gpu": "h200"}


def fits(config: PlanConfig) -> bool:
    """Whether a configuration divides and fits."""
    try:
        return not Memory(lay_out(config)).problem
    except ValueError:
        return False


def find_fix(config: PlanConfig) -> Change:
    """The first single change after which it fits, else the first changes taken together; empty if none helps."""
    for change in changes(config):
        if fits(replace(config, **change)):
            return change
    together: Change = {}
    for change in changes(config):
        if together.get("zero_stage", 0) > change.get("zero_stage", 3):
            change.pop("zero_stage")
        if _divides(replace(config, **(together | change))):
            together |= change
        if fits(replace(config, **together)):
            return _without_needless(config, together)
    return {}


def check_fit(memory: Memory) -> None:
    """ValueError with the fix when a GPU does not hold what it must."""
    problem = memory.problem
    if problem:
        fix = find_fix(memory.layout.config)
        last = "lower max_response_length or take a smaller model: no placement known to plan holds it"
        raise ValueError(f"{problem}: {'set ' + in_words(fix) if fix else last}")


def in_words(change: Change) -> str:
    """key=value, as for --set."""
    return " ".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in change.items())


def _divides(config: PlanConfig) -> bool:
    try:
        lay_out(config)
    except ValueError:
        return False
    return True


def _without_needless(config: PlanConfig, change: Change) -> Change:
    for key in list(change):
        fewer = {k: v for k, v in change.items() if k != key}
        if fits(replace(config, **fewer)):
            change = fewer
    return change
