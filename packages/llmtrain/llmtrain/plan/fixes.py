"""Fix for a configuration that does not fit: the first single change that helps, or the fewest combined."""

from collections.abc import Iterator
from dataclasses import replace

from .derived import divides, lay_out
from .memory import Memory
from .plan_config import Change, PlanConfig, in_words


def changes(config: PlanConfig) -> Iterator[Change]:
    """Yield changes that save memory, cheapest in time first. None of them affects learning."""
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
    """Return True if a configuration divides and fits."""
    return divides(config) and not Memory(lay_out(config)).problem


def find_fix(config: PlanConfig) -> Change:
    """Return the first single change that makes `config` fit, else the first combined changes; empty if none helps.

    Any of them may also unset `gpu_memory_utilization`, since the free memory depends on the other changes.
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


def find_fix_on_its_gpus(config: PlanConfig) -> Change:
    """Return the fix if it keeps number and type of the GPUs; else empty, also if sizes do not divide."""
    try:
        fix = find_fix(config)
    except ValueError:
        return {}
    return {} if {"gpu", "gpus"} & set(fix) else fix


def check_fit(memory: Memory) -> None:
    """Raise ValueError with the fix if a GPU's memory is too small."""
    problem = memory.problem
    if problem:
        fix = find_fix(memory.layout.config)
        last = "lower max_response_length or take a smaller model: no placement known to plan fits"
        raise ValueError(f"{problem}: {'set ' + in_words(fix) if fix else last}")


def _least(config: PlanConfig, change: Change) -> Change:
    """Return `change` without unnecessary keys, and with the lowest ZeRO stage that fits."""
    for key in change:
        fewer = {k: v for k, v in change.items() if k != key}
        if fits(replace(config, **fewer)):
            change = fewer
    for stage in range(config.zero_stage + 1, change.get("zero_stage", 0)):
        if fits(replace(config, **(change | {"zero_stage": stage}))):
            return change | {"zero_stage": stage}
    return change
