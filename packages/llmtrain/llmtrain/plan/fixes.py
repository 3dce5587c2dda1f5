"""What to change when a configuration does not fit: the first change that helps, or the fewest taken together."""

from collections.abc import Iterator
from dataclasses import replace

from .derived import divides, lay_out
from .memory import Memory
from .plan_config import Change, PlanConfig, in_words


def changes(config: PlanConfig) -> Iterator[Change]:
    """Changes that save memory, those that cost least time first. None changes what is learnt."""
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
    return divides(config) and not Memory(lay_out(config)).problem


def find_fix(config: PlanConfig) -> Change:
    """The first single change after which it fits, else the first changes taken together; empty if none helps.

    A share of the GPU that was set for the engine is given up beside any of them: what is free depends on the others.
    """
    share: Change = {} if config.gpu_memory_utilization is None else {"gpu_memory_utilization": None}
    for change in [share, *changes(config)]:
        for some in (change, share | change):
            if fits(replace(config, **some)):
                return _least(config, some)
    together = share
    for change in changes(config):
        if together.get("zero_stage", 0) > change.get("zero_stage", 3):
            change.pop("zero_stage")
        if divides(replace(config, **(together | change))):
            together = together | change
        if fits(replace(config, **together)):
            return _least(config, together)
    return {}


def check_fit(memory: Memory) -> None:
    """ValueError with the fix when a GPU does not hold what it must."""
    problem = memory.problem
    if problem:
        fix = find_fix(memory.layout.config)
        last = "lower max_response_length or take a smaller model: no placement known to plan holds it"
        raise ValueError(f"{problem}: {'set ' + in_words(fix) if fix else last}")


def _least(config: PlanConfig, change: Change) -> Change:
    """`change` without what is needless, and with the lowest stage of ZeRO that does."""
    for key in change:
        fewer = {k: v for k, v in change.items() if k != key}
        if fits(replace(config, **fewer)):
            change = fewer
    for stage in range(config.zero_stage + 1, change.get("zero_stage", 0)):
        if fits(replace(config, **(change | {"zero_stage": stage}))):
            return change | {"zero_stage": stage}
    return change
