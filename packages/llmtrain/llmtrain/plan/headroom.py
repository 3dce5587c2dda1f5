"""Headroom: memory of a GPU that a plan leaves free, and the engine's share that would leave more.

Unless gpu_memory_utilization is set, the KV cache takes all that is free, up to MOST_UTILIZATION. Most plans then have
no headroom in rollout beside the memory reserved for what is not modelled.
"""

from dataclasses import replace

from .cost import RunPlan, make_plan
from .fixes import fits
from .gpu import GIB

ENOUGH = 0.05
"""Share of a GPU's memory that should stay free in each phase."""


def headroom(plan: RunPlan) -> dict[str, float]:
    """Return the free bytes of a GPU in training and in rollout."""
    whole = plan.layout.gpu.memory
    phases = {"training": plan.memory.training, "rollout": plan.memory.rollout}
    return {phase: max(whole - sum(parts.values()), 0.0) for phase, parts in phases.items()}


def roomier(plan: RunPlan) -> RunPlan | None:
    """Return the plan with the largest gpu_memory_utilization, of two digits, that leaves ENOUGH free in rollout.

    None if the plan leaves that much already, or if such a plan does not fit.
    """
    lacking = ENOUGH - headroom(plan)["rollout"] / plan.layout.gpu.memory
    if lacking <= 1e-9:
        return None
    share = int(100 * (plan.memory.utilization - lacking) + 1e-9) / 100
    config = replace(plan.config, gpu_memory_utilization=share) if share > 0 else None
    return make_plan(config) if config and fits(config) else None


def headroom_in_words(plan: RunPlan) -> str:
    """Return the headroom as sentences, with a setting that leaves more if it is below ENOUGH."""
    whole, free = plan.layout.gpu.memory, headroom(plan)
    told = "; ".join(f"{phase} {size / GIB:.1f} GiB ({size / whole:.0%})" for phase, size in free.items())
    reserved = plan.memory.rollout["reserved"] / GIB
    said = f"Free memory of a GPU: {told}, beside {reserved:.0f} GiB reserved for what is not modelled."
    if all(size >= ENOUGH * whole * (1 - 1e-9) for size in free.values()):
        return said
    other = roomier(plan)
    if free["rollout"] >= ENOUGH * whole or other is None:
        return f"{said} Less than {ENOUGH:.0%} is free: if memory runs out, the trainer names what to lower."
    cost = max(other.seconds / plan.seconds - 1, 0.0)
    change = f"gpu_memory_utilization={other.config.gpu_memory_utilization}"
    return (
        f"{said} The KV cache takes what is free; {change} leaves {headroom(other)['rollout'] / GIB:.1f} GiB, for "
        f"{cost:.1%} more time."
    )
