"""Token weights of least cost that give a wanted mean flow."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .reduce import LocalReduce

ROUNDS = 64
"""Upper limit for the number of Newton steps; three or four are usual."""
PATIENCE = 6
"""Newton steps after which the code checks if the wanted flow can be reached at all."""


class WaterLevel(NamedTuple):
    """Result of `water_level`."""

    weight: Tensor
    """m (..., N), in the dtype of the flow."""
    level: Tensor
    """ν (...,), float64; if the wanted flow is out of reach, a number that is not yet large enough."""
    achieved: Tensor
    """mean m_t·φ_t + linear·ν (...,), float64."""
    base: Tensor
    """mean φ_t (...,), float64."""


def water_level(
    flow: Tensor, price: Tensor, wanted: Tensor, m_max: Tensor, reduce: LocalReduce, linear: Tensor | None = None
) -> WaterLevel:
    """Minimise Σ g_t(m_t − 1)² subject to mean m_t·φ_t = wanted and 0 ≤ m_t ≤ m_max.

    The solution is m_t = clip(1 + ν·φ_t/g_t, 0, m_max) with one ν for all tokens. `flow` φ and `price` g ≥ 0 are
    (..., N), with φ = 0 where g = 0; `wanted` and `m_max` > 1 are (...,). If the wanted flow is out of reach, the
    nearest flow within reach is used. Tokens without flow get weight 1. With `linear` (...,) ≥ 0 another term adds the
    flow `linear`·ν, such as a bonus; then no flow is out of reach.

    mean m·φ never falls as ν grows, is linear between the points at which a token reaches a bound, and is steepest at
    ν = 0, where none is at a bound: Newton's method from there approaches from one side and ends in finitely many
    steps.
    """
    per_level = flow / price.clamp(min=torch.finfo(price.dtype).tiny)
    slope = per_level * flow
    top = m_max.to(flow).unsqueeze(-1)
    low: Any = torch.zeros_like(top) if m_max.dim() else 0.0
    high: Any = top if m_max.dim() else float(m_max)  # numbers are faster
    base = reduce.mean(flow)
    beside = torch.zeros_like(base) if linear is None else linear.to(base)
    missing, steepness = wanted - base, reduce.mean(slope) + beside
    upward, level, enough = missing > 0, torch.zeros_like(base), 4 * torch.finfo(flow.dtype).eps
    weight, limit = torch.ones_like(flow), torch.where(upward, torch.inf, -torch.inf)
    raw, product = torch.ones_like(flow), torch.empty_like(flow)  # reused: new memory costs more than sums
    for number in range(ROUNDS):
        if number == PATIENCE:
            rising = reduce.mean(flow.clamp(min=0))
            limit = torch.where(beside > 0, limit, m_max * torch.where(upward, rising, base - rising))
        unfinished = (missing != 0) & ((missing > 0) == upward) & ((wanted < limit) == upward)
        unfinished &= missing.abs() > enough * steepness * level.abs()
        if not bool(unfinished.any()):
            break
        if number:
            inside = torch.eq(raw, weight, out=raw)
            steepness = reduce.mean(inside.mul_(slope)) + beside
        unfinished &= steepness > 0
        level = torch.where(unfinished, level + missing / steepness, level)
        torch.mul(per_level, level.to(flow).unsqueeze(-1), out=raw).add_(1)
        torch.clamp(raw, low, high, out=weight)
        missing = wanted - reduce.mean(torch.mul(weight, flow, out=product)) - beside * level
    beyond = (wanted >= limit) == upward
    if bool(beyond.any()):
        bounds = torch.where((flow > 0) == upward.unsqueeze(-1), top, 0.0).masked_fill(flow == 0, 1.0)
        weight = torch.where(beyond.unsqueeze(-1), bounds, weight)
        missing = torch.where(beyond, wanted - limit, missing)
    return WaterLevel(weight, level, wanted - missing, base)
