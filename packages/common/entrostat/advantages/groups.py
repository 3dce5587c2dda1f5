"""Advantages relative to the group, or of a verdict alone."""

import warnings

import torch
from torch import Tensor

from ..numbers.reduce import LocalReduce
from ..numbers.segments import Segments, as_segments, quantile_within
from .registry import Groups, needed, register

STD_EPS = 1e-6
"""Number added to a standard deviation before dividing by it."""
ROUNDING = 4
"""Units in the last place by which equal rewards may differ, as sums of the same parts in another order do."""
CANCELLED = 8
"""Units in the last place that a sum of normalised rewards may keep where they cancel."""
VARIANCE_EPS = 1e-8
"""Number added to a variance over tokens before its root, as verl does."""
WHITENED = ("tokens", "responses")
MANY = 8
"""Responses among which at least two to one prompt are expected; of fewer, a filter may leave one to each."""


def groups_of(group_id: Groups) -> Segments:
    """Return the groups of responses. If each response has a group of its own, warn; raise ValueError from MANY on."""
    groups = as_segments(group_id)
    if groups.count > 1 and groups.count == groups.index.numel():
        told = (
            f"group_id differs between all {groups.count} responses, so that none has another to be compared with and "
            "all advantages are 0: give responses to one prompt the same group_id, and sample several"
        )
        if groups.count >= MANY:
            raise ValueError(told)
        warnings.warn(told, stacklevel=4)
    return groups


def centred_rewards(reward: Tensor, group_id: Groups) -> tuple[Tensor, Segments]:
    """Return R − group mean, (..., n), and the groups. Exactly 0 if all responses of a group have the same reward.

    Rewards that differ by rounding alone are the same. Warns or raises ValueError as `groups_of`.
    """
    groups = groups_of(group_id)
    above = reward - groups.spread(groups.pick(reward))
    above = above.where(above.abs() > ROUNDING * torch.finfo(reward.dtype).eps * reward.abs(), 0.0)
    return above - groups.spread(groups.mean(above)), groups


def per_deviation(centred: Tensor, groups: Segments) -> Tensor:
    """Return 1 / (unbiased standard deviation of the group + 1e-6), (..., n); 0 for a group without differences."""
    variance = groups.sum(centred**2) / (groups.size - 1).clamp(min=1)
    return groups.spread((variance > 0) / (variance.sqrt() + STD_EPS))


@register("grpo", source="Shao et al. 2024 (GRPO)")
def grpo(reward: Tensor, group_id: Groups) -> Tensor:
    """(R − mean) / (std + 1e-6) with the unbiased standard deviation (GRPO). A group of one has advantage 0."""
    centred, groups = centred_rewards(reward, group_id)
    return centred * per_deviation(centred, groups)


@register("dr_grpo", source="Liu et al. 2025 (Dr. GRPO)")
def dr_grpo(reward: Tensor, group_id: Groups) -> Tensor:
    """R − mean, no division by the standard deviation (Dr. GRPO)."""
    return centred_rewards(reward, group_id)[0]


@register("rloo", source="Ahmadian et al. 2024 (RLOO)")
def rloo(reward: Tensor, group_id: Groups) -> Tensor:
    """R − mean of the other members (RLOO). A group of one has advantage 0."""
    centred, groups = centred_rewards(reward, group_id)
    return centred * groups.spread(groups.size.to(centred) / (groups.size - 1).clamp(min=1))


@register(
    "reinforce_pp",
    source="Hu et al. 2025 (REINFORCE++, with the baseline of a group)",
    over_batch=True,
    uses=("length",),
    hyperparameters={"over": ("What counts the same in mean and variance: tokens or responses.", WHITENED)},
)
def reinforce_pp(
    reward: Tensor,
    group_id: Groups,
    *,
    length: Tensor | None = None,
    reduce: LocalReduce | None = None,
    over: str = "tokens",
) -> Tensor:
    """(c − mean c) / √(var c + 1e-8) with c = R − group mean, mean and unbiased variance over the tokens of the batch.

    The batch is the n given responses and those of all other ranks that `reduce` covers, separately in each run.
    over=tokens: each response counts by its length, as in verl (compute_reinforce_plus_plus_baseline_outcome_advantage)
    and OpenRLHF, where a group of one has no baseline; here its advantage before whitening is 0.
    over=responses: c / (std c + 1e-6), every response counts the same, whatever its length; the mean of c is 0.
    length: number of tokens of each response, (n,) or (..., n); None: one for each.
    """
    reduce = reduce or LocalReduce()
    centred, _ = centred_rewards(reward, group_id)
    if over == "responses":
        variance = reduce.sum(centred**2) / (reduce.size(reward)[0] - 1).clamp(min=1)
        return centred / (variance.sqrt().unsqueeze(-1) + STD_EPS).to(centred)
    return whitened(centred, length, reduce)


def whitened(x: Tensor, length: Tensor | None, reduce: LocalReduce) -> Tensor:
    """Return (x − mean) / √(variance + 1e-8) over the tokens of the batch, of a number x per response, (..., n).

    length: number of tokens of each response; None: one each, and x has mean 0, as what is centred in its group.
    """
    if length is None:
        count, above = torch.ones_like(x), x
    else:
        count = length.to(x).expand(x.shape)
        mean = reduce.sum(count * x) / reduce.sum(count).clamp(min=1)
        above = x - mean.unsqueeze(-1).to(x)
    variance = reduce.sum(count * above**2) / (reduce.sum(count) - 1).clamp(min=1)
    return above * (variance + VARIANCE_EPS).rsqrt().unsqueeze(-1).to(above)


@register(
    "gdpo",
    source="GDPO (arXiv 2601.05242)",
    needs=("rewards",),
    over_batch=True,
    uses=("weight", "length"),
)
def gdpo(
    reward: Tensor,
    group_id: Groups,
    *,
    rewards: Tensor | None = None,
    weight: Tensor | None = None,
    length: Tensor | None = None,
    reduce: LocalReduce | None = None,
) -> Tensor:
    """Weighted sum of the GRPO advantages of several rewards, each normalised by itself, whitened over all tokens.

    A reward with a small spread counts as much as one with a large spread; in their sum it would be lost.
    rewards: (m, ..., n), the parts of `reward`, which is not used itself. weight: (m,); None: 1 each.
    length: number of tokens of each response, as in `reinforce_pp`. Raises ValueError if there are no rewards.
    Rewards that cancel, as r and 1 − r do, leave 0, and not their rounding.
    """
    parts = needed("gdpo", "rewards", rewards)
    if parts.ndim != reward.ndim + 1 or not len(parts):
        raise ValueError(f"advantage 'gdpo': rewards must be a stack of tensors like reward; got {tuple(parts.shape)}")
    rounding = torch.finfo(torch.promote_types(parts.dtype, torch.float32)).eps
    parts, share = parts.double(), torch.ones(len(parts)) if weight is None else weight
    if share.shape != (len(parts),):
        raise ValueError(f"advantage 'gdpo': weight must have a number for each of the {len(parts)} rewards")
    each = torch.stack([grpo(part, group_id) for part in parts]) * share.to(parts).reshape(-1, *[1] * reward.ndim)
    summed, size = each.sum(0), each.abs().sum(0)
    left = summed.where(summed.abs() > CANCELLED * rounding * size, 0.0)
    return whitened(left, length, reduce or LocalReduce())


@register("remax", source="Li et al. 2024 (ReMax, arXiv 2310.10505)", needs=("greedy",))
def remax(reward: Tensor, group_id: Groups, *, greedy: Tensor | None = None) -> Tensor:
    """R − the reward of the greedy response to the same prompt.

    greedy: that reward for each response, (n,) or (..., n). Raises ValueError if it is not given.
    """
    return reward - needed("remax", "greedy", greedy)


@register("opo", source="Hao et al. 2025 (OPO)", needs=("length",))
def opo(reward: Tensor, group_id: Groups, *, length: Tensor | None = None) -> Tensor:
    """R_i − Σ_j l_j·R_j / Σ_j l_j over the group: the baseline weighs a response by its length.

    length: number of tokens of each response, (n,) or (..., n). Raises ValueError if it is not given.
    """
    weight = needed("opo", "length", length).to(reward)
    groups = groups_of(group_id)
    tokens = groups.sum(weight.expand(reward.shape))
    above = reward - groups.spread(groups.pick(reward))
    return above - groups.spread(groups.sum(weight * above) / tokens.clamp(min=1))


@register(
    "qae",
    source="Wu et al. 2026 (QAE), equation 3",
    quadrants=("I", "II", "III", "IV"),
    hyperparameters={"k": ("K of the quantile; groups with a success rate above 1 − K are easy.", "(0, 1)")},
)
def qae(reward: Tensor, group_id: Groups, *, k: float = 0.4) -> Tensor:
    """(R − K-quantile) / (std + 1e-6): learns only from successes on hard prompts, only from failures on easy ones.

    The quantile is the smallest reward that a share K of the group does not exceed (the released code interpolates
    between two rewards).
    """
    centred, groups = centred_rewards(reward, group_id)
    above = reward - groups.spread(quantile_within(reward, groups, k))
    return above * per_deviation(centred, groups)


@register(
    "w_reinforce",
    source="Zhu et al. 2025 (W-REINFORCE)",
    quadrants=("I", "II"),
    hyperparameters={"positive": ("Advantage of a correct response (λ).", "[0, inf)")},
)
def w_reinforce(reward: Tensor, group_id: Groups, *, positive: float | Tensor = 0.1) -> Tensor:
    """+λ for a correct response, −1 for a wrong one; no baseline. Raises ValueError on a reward other than 0 and 1.

    positive: λ, or one value per run, (runs…,).
    """
    column = torch.as_tensor(positive, dtype=reward.dtype, device=reward.device).unsqueeze(-1)
    return torch.where(are_correct("w_reinforce", reward), column, -1.0)


@register("psr", source="Zhu et al. 2025 (PSR)", quadrants=("III", "IV"))
def psr(reward: Tensor, group_id: Groups) -> Tensor:
    """+1 for a correct response, 0 for a wrong one (positive sample reinforcement). Errors as in `w_reinforce`."""
    return are_correct("psr", reward).to(reward.dtype)


@register("nsr", source="Zhu et al. 2025 (NSR)", quadrants=("I", "II"))
def nsr(reward: Tensor, group_id: Groups) -> Tensor:
    """0 for a correct response, −1 for a wrong one (negative sample reinforcement). Errors as in `w_reinforce`."""
    return are_correct("nsr", reward).to(reward.dtype) - 1


def are_correct(name: str, reward: Tensor) -> Tensor:
    """Return a mask (..., n) of the correct responses. Raises ValueError on a reward other than 0 and 1."""
    correct = reward == 1
    if not bool((correct | (reward == 0)).all()):
        raise ValueError(f"advantage {name!r} takes rewards of 0 and 1")
    return correct
