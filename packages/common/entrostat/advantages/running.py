"""Advantage over a running mean of the rewards of the same source, which the caller keeps between rollouts."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from .registry import Groups, needed, register


@register(
    "rae",
    source="Liu et al. 2025 (SPIRAL, arXiv 2506.24119), role-conditioned advantage estimation, and its released code, "
    "role_baseline_ema; prime-rl, RAEAlgorithm",
    needs=("source", "baseline"),
    hyperparameters={"decay": ("Share of a baseline that stays after a reward of its source (α).", "[0, 1)")},
)
def rae(
    reward: Tensor,
    group_id: Groups,
    *,
    source: Tensor | None = None,
    baseline: Tensor | None = None,
    decay: float = 0.95,
) -> Tensor:
    """R − b of the response's source, b ← decay·b + (1 − decay)·R after each response of that source.

    A source is whatever has rewards of its own height: a role in a game, an agent, a data set. Groups are not used; a
    group may be one response. Responses count in their order, each against b before its own reward, as in the released
    code. Not divided by a deviation.
    source: index of each response's source, int64 (n,), from 0 to S − 1. baseline: b of each source before the first
    response, (S,) or (..., S); zeros at the start of a run. `rae_baseline` returns it as it is afterwards.
    Raises ValueError if one is not given, if a baseline is not finite, and on a source without a baseline.
    """
    before, _ = _running(reward, needed("rae", "source", source), needed("rae", "baseline", baseline), decay)
    return (reward.double() - before).to(reward.dtype)


def rae_baseline(reward: Tensor, source: Tensor, baseline: Tensor, decay: float = 0.95) -> Tensor:
    """Return the baselines of `rae` after these responses, float64 (..., S): the `baseline` of the next call.

    The arguments are those of `rae`; only a source with a response changes. Raises the same errors.
    """
    if not bool(reward.isfinite().all()):
        raise ValueError("advantage 'rae': a reward is not finite; give such a response the reward 0")
    return _running(reward, source, baseline, decay)[1]


def _running(reward: Tensor, source: Tensor, baseline: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    """Return the baseline of each response before its reward, (..., n), and of each source at the end, (..., S)."""
    n, start = reward.shape[-1], baseline.double()
    if not 0 <= decay < 1:
        raise ValueError(f"decay of the advantage 'rae' must lie in [0, 1); got {decay}")
    if source.shape != (n,) or source.is_floating_point():
        raise ValueError(f"advantage 'rae': source must have one integer for each of the {n} rewards")
    if not bool(start.isfinite().all()):
        raise ValueError("advantage 'rae': a baseline is not finite; begin with 0")
    if n and not 0 <= int(source.min()) <= int(source.max()) < start.shape[-1]:
        raise ValueError(
            f"advantage 'rae': source must be from 0 to {start.shape[-1] - 1}, the baselines that are given"
        )
    leading, sources = torch.broadcast_shapes(reward.shape[:-1], start.shape[:-1]), start.shape[-1]
    given = [start.expand(*leading, sources), ((1 - decay) * reward.double()).expand(*leading, n)]
    owner = torch.cat([torch.arange(sources, device=source.device), source])  # every source begins with its baseline
    order = owner.argsort(stable=True)
    after = torch.cat(given, -1)[..., order]
    kept = decay * (order >= sources).double()
    shift = 1
    while shift < len(order):  # each b is kept·(b before) + after; composing neighbours doubles the reach
        after = after + kept * pad(after[..., :-shift], (shift, 0))
        kept = kept * pad(kept[:-shift], (shift, 0))
        shift *= 2
    last = owner.bincount(minlength=sources).cumsum(0) - 1
    return after[..., order.argsort()[sources:] - 1], after[..., last]
