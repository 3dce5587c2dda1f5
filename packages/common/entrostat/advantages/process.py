"""Advantages of each token: by an implicit process reward, or by a baseline of its own."""

import torch
from torch import Tensor

from ..numbers.segments import Segments, as_segments
from .groups import rloo
from .registry import Groups, needed, register


@register(
    "prime",
    source="Cui et al. 2025 (PRIME)",
    needs=("prm_logp", "ref_logp", "response"),
    hyperparameters={"beta": ("Scale of the implicit process reward.", "(0, inf)")},
)
def prime(
    reward: Tensor,
    group_id: Groups,
    *,
    prm_logp: Tensor | None = None,
    ref_logp: Tensor | None = None,
    response: Tensor | None = None,
    beta: float = 0.05,
) -> Tensor:
    """Reward-to-go of β·(log π_prm − log π_ref) minus its baseline, plus the outcome's RLOO advantage: (..., N).

    The baseline is the leave-one-out mean, over the group, of the responses' mean process rewards. In a group of one
    the baseline and the outcome advantage are 0.
    prm_logp, ref_logp: log-probability of each response token under the implicit reward model and its reference model,
    (..., N), nats.
    response: index of the response, among the n, that each token belongs to, int64 (N,), ascending.
    Raises ValueError if one of the three is not given, or if tokens are not in the order of their responses.
    """
    prm, ref = needed("prime", "prm_logp", prm_logp), needed("prime", "ref_logp", ref_logp)
    owner = _owner("prime", response)
    process = beta * (prm - ref)
    shape = (*torch.broadcast_shapes(process.shape[:-1], reward.shape[:-1]), process.shape[-1])
    process, index = process.expand(shape), owner.expand(shape)
    table = process.new_zeros(*shape[:-1], reward.shape[-1])
    length = table.scatter_add(-1, index, torch.ones_like(process))
    mean = table.scatter_add(-1, index, process) / length.clamp(min=1)
    groups = as_segments(group_id)
    size = groups.spread(groups.size)
    others = (groups.spread(groups.sum(mean)) - mean) / (size - 1).clamp(min=1)
    to_go = _reward_to_go(process - others.gather(-1, index), index, length)
    return to_go + rloo(reward, group_id).expand(others.shape).gather(-1, index)


def _owner(name: str, response: Tensor | None) -> Tensor:
    """Return the index of each token's response, (N,). Raises ValueError if it is missing or does not ascend."""
    owner = needed(name, "response", response)
    if bool((owner.diff() < 0).any()):
        raise ValueError(f"advantage {name!r} takes tokens in the order of their responses: response must ascend")
    return owner


def _reward_to_go(x: Tensor, response: Tensor, length: Tensor) -> Tensor:
    """Return the sum of x from each token to the end of its response, (..., N).

    response: index of each token's response, (..., N), ascending. length: tokens of each response, (..., n).
    """
    run = torch.nn.functional.pad(x.double().cumsum(-1), (1, 0))
    end = run.gather(-1, length.long().cumsum(-1))
    return (end.gather(-1, response) - run[..., 1:]).to(x.dtype) + x


@register(
    "optimal_token",
    source="Li et al. 2026 (Optimal Token Baseline, arXiv 2602.07078), as verl has it",
    needs=("logp", "s2", "response"),
)
def optimal_token(
    reward: Tensor,
    group_id: Groups,
    *,
    logp: Tensor | None = None,
    s2: Tensor | None = None,
    response: Tensor | None = None,
) -> Tensor:
    """R − B_t of each token, (..., N), with the group's weighted mean reward at its place t as baseline.

    B_t is the mean reward of the group's responses that have a place t, weighted by W_t = Σ_{j≤t} (1 − 2π_j + Σπ_j²),
    the squared length of ∇log π in the logits so far, of which a token adds at least the rounding of the two inputs: of
    nearly certain tokens they tell nothing else. B_t is 0 where a response is the only one. verl adds 1e-8 to ΣW_t.
    With two tokens or more other weights have less variance, and the response itself in B_t turns the expected step:
    claims `optimal-token-baseline` and `optimal-token-group` of the bandit.
    logp, s2: log π of the policy that sampled, and Σπ², of each token, (..., N). response: as in `prime`.
    Raises ValueError if one of the three is not given, or if tokens are not in the order of their responses.
    """
    logp, s2 = needed("optimal_token", "logp", logp), needed("optimal_token", "s2", s2)
    owner = _owner("optimal_token", response)
    outcome = reward[..., owner]
    rounding = torch.finfo(torch.promote_types(logp.dtype, s2.dtype)).eps
    squared = (1 - 2 * logp.double().exp() + s2.double()).clamp(min=rounding)
    run = torch.nn.functional.pad(squared.cumsum(-1), (1, 0))
    first = torch.searchsorted(owner, owner)  # of the token's response
    weight = run[..., 1:] - run[..., first]
    place = torch.arange(len(owner), device=owner.device) - first
    places = Segments(as_segments(group_id).index[owner] * (len(owner) + 1) + place)
    baseline = places.sum(outcome * weight) / places.sum(weight.expand(outcome.shape))
    return (outcome - places.spread(torch.where(places.size > 1, baseline, 0.0))).to(outcome.dtype)
