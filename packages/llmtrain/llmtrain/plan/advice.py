"""Advice on placement: each possible change is planned, and changes that save time are kept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .cost import RunPlan, make_plan
from .plan_config import Change, PlanConfig, in_words

WORTH = 0.02
"""Minimum share of the step time that a listed change saves."""
MOST = 4
"""Upper limit for listed changes."""


@dataclass(frozen=True)
class Advice:
    """Change of the configuration, and the plan after it."""

    change: Change
    plan: RunPlan
    note: str = ""

    @property
    def words(self) -> str:
        """The change as key=value settings."""
        return in_words(self.change)


def candidates(config: PlanConfig) -> Iterator[tuple[Change, str]]:
    """Yield changes that may save time, each with a note on its side effect."""
    yield from (({"tensor_model_parallel_size": x}, "") for x in (1, 2, 4, 8) if x != config.tensor_model_parallel_size)
    yield from (({"zero_stage": x}, "") for x in (1, 2, 3) if x != config.zero_stage)
    yield from (({"micro_batch_tokens": config.micro_batch_tokens * x}, "") for x in (2, 4))
    yield from (({"max_num_seqs": config.max_num_seqs * x}, "") for x in (2, 4))
    if config.gradient_checkpointing:
        yield {"gradient_checkpointing": False}, ""
    if config.offload_param:
        yield {"offload_param": False}, ""
    if config.offload_optimizer:
        yield {"offload_optimizer": False, "offload_param": False}, ""
    if config.stats == "fresh":
        yield {"stats": "rollout"}, "later mini-batches see older statistics"
    if not config.partial_tokens:
        for parts, age in ((2, "a step"), (4, "3 steps")):
            yield {"partial_tokens": config.max_response_length // parts}, f"tokens are up to {age} old"
    if config.colocated and config.gpus > 1:
        for share in (0.25, 0.5, 0.75):
            own = round(config.gpus * share)
            yield {"colocated": False, "rollout_gpus": own, "staleness": 1}, "rollouts are a step old"
    if not config.colocated and not config.staleness:
        yield {"staleness": 1}, "rollouts are a step old"


def advise(plan: RunPlan) -> list[Advice]:
    """Return the changes that save most time, best first; at most one for each set of keys."""
    best: dict[tuple[str, ...], Advice] = {}
    for change, note in candidates(plan.config):
        try:
            other = make_plan(replace(plan.config, **change))
        except ValueError:
            continue
        keys = tuple(change)
        if other.seconds < (1 - WORTH) * plan.seconds and (keys not in best or other.seconds < best[keys].plan.seconds):
            best[keys] = Advice(change, other, note)
    return sorted(best.values(), key=lambda advice: advice.plan.seconds)[:MOST]
