"""Advantages that aim at more than one response: pass@k, and its mixture that approaches the likelihood."""

import torch
from torch import Tensor

from ..numbers.segments import Segments, as_segments, ascending
from .groups import are_correct, centred_rewards, per_deviation, rloo
from .registry import Groups, register

VARIANTS = ("unbiased", "analytic", "best")


@register("max_rl", source="Tajwar et al. 2026 (MaxRL, arXiv 2602.02710)")
def max_rl(reward: Tensor, group_id: Groups) -> Tensor:
    """(R − mean) / mean; 0 in a group whose mean is 0 (MaxRL). Raises ValueError on a reward below 0.

    With rewards of 0 and 1 and groups of n, its expected gradient is that of Σ_{k<n} pass@k/k, the beginning of log p.
    In the paper, whose theorem is of the mean over successes without the baseline, k goes to n: a group without a
    success loses its part of the baseline.
    """
    if bool((reward < 0).any()):
        raise ValueError("advantage 'max_rl' takes rewards of at least 0: it divides by their mean")
    centred, groups = centred_rewards(reward, group_id)
    mean = groups.spread(groups.mean(reward))
    return torch.where(mean > 0, centred / torch.where(mean > 0, mean, 1.0), 0.0)


@register(
    "pass_at_k",
    source="Walder & Karkhanis 2025 (PKPO, arXiv 2505.15201); Tang et al. 2025 (arXiv 2503.19595); "
    "Chen et al. 2025 (Pass@k training, arXiv 2508.10751)",
    hyperparameters={
        "k": ("Number of responses of which the best counts; at most the size of a group.", "[1, inf)"),
        "variant": ("Estimator: unbiased, analytic or best.", VARIANTS),
    },
)
def pass_at_k(reward: Tensor, group_id: Groups, *, k: int = 4, variant: str = "unbiased") -> Tensor:
    """Gradient of the expected best of k responses, estimated from groups of n ≥ k; pass@k for rewards of 0 and 1.

    unbiased: k times the mean, over all sets of k that have the response, of what it adds to the best of the others;
    RLOO if k = 1. analytic: of rewards of 0 and 1, the mean over these sets of pass or fail, minus that over all sets,
    per deviation √(P(1 − P)), P the share of sets that pass (Chen et al., equations 14 and 15). best: (best − second) /
    (std + 1e-6) for the best response, 0 for others: k = n, as verl's grpo_passk, which has no factor n.
    Raises ValueError if k is no whole number or above the size of a group, and, of `analytic`, on a reward other than 0
    and 1.
    """
    groups = as_segments(group_id)
    if not reward.numel():
        return reward
    if k != int(k) or k > (groups.width or int(groups.size.amin())):
        raise ValueError(f"k of the advantage 'pass_at_k' must be a whole number, at most the size of a group; got {k}")
    if variant == "analytic":
        return _analytic(are_correct("pass_at_k", reward), groups, int(k)).to(reward.dtype)
    if variant == "best":
        added = _added(reward, groups, None)
        return added * per_deviation(centred_rewards(reward, groups)[0], groups)
    return rloo(reward, groups) if k == 1 else k * _added(reward, groups, int(k))


def _added(reward: Tensor, groups: Segments, k: int | None) -> Tensor:
    """Return the mean, over the sets of k with a response, of what it adds to the best of the others, (..., n).

    k: None for the whole group. In ascending order the one at place i adds Σ_{j<i} (r_i − r_j) times the share of sets
    of which j is the second: C(j, k−2)/C(n−1, k−1).
    """
    order, first = ascending(reward, groups)
    sorted_ = reward.gather(-1, order).double()
    index = groups.index.expand(reward.shape).gather(-1, order)
    size = groups.size.double().expand(*reward.shape[:-1], groups.count).gather(-1, index)
    place = (torch.arange(reward.shape[-1], device=reward.device) - first.gather(-1, index)).double()
    sets = size if k is None else torch.full_like(size, k)
    share = _share(place, sets - 2, size - 1, sets - 1)
    above = sorted_ - sorted_.gather(-1, first.gather(-1, index))  # of the least of its group: equal rewards give 0
    before = _before(share, first, index), _before(share * above, first, index)
    return torch.zeros_like(sorted_).scatter(-1, order, above * before[0] - before[1]).to(reward.dtype)


def _before(x: Tensor, first: Tensor, index: Tensor) -> Tensor:
    """Return the sum of x over the earlier places of the group, (..., n)."""
    run = torch.nn.functional.pad(x.cumsum(-1), (1, 0))
    return run[..., :-1] - run.gather(-1, first.gather(-1, index))


def _analytic(correct: Tensor, groups: Segments, k: int) -> Tensor:
    size = groups.size.double()
    wrong = size - groups.sum(correct.double())
    sets = torch.full_like(size, k)
    failed = _share(wrong, sets, size, sets)  # of the sets, those without a correct response
    others = _share(wrong - 1, sets - 1, size - 1, sets - 1)  # of those that have a given wrong one
    deviation = (failed * (1 - failed)).sqrt()
    per = torch.where(deviation > 0, 1 / torch.where(deviation > 0, deviation, 1.0), 0.0)
    return torch.where(correct, groups.spread(failed * per), groups.spread((failed - others) * per))


def _share(n: Tensor, k: Tensor, of_n: Tensor, of_k: Tensor) -> Tensor:
    """Return C(n, k) / C(of_n, of_k), float64, without either, which overflow; 0 unless 0 ≤ k ≤ n."""
    there = (k >= 0) & (k <= n)
    log = _log_choose(torch.where(there, n, 0.0), torch.where(there, k, 0.0)) - _log_choose(of_n, of_k)
    return torch.where(there, log.exp(), 0.0)


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
