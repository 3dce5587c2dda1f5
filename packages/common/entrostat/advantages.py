"""Advantages of a group of responses to one prompt.

Every function takes `reward` (..., n), one number per response, and `group_id` (n,) or (..., n), integers that are
equal for responses to the same prompt, or their `Segments`, and returns (..., n), at least float32. Leading dimensions
are independent runs. Further inputs are passed by keyword: `advantage_needs(name)` lists them. Only `prime` returns one
number per token.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

from .numbers.reduce import LocalReduce
from .numbers.segments import Segments, as_segments, quantile_within
from .settings.allowed import complaint
from .settings.commandline import parse_settings
from .settings.importing import is_made_again, outside

Advantage = Callable[..., Tensor]
Groups = Tensor | Segments
STD_EPS = 1e-6
"""Number added to a standard deviation before dividing by it."""
VARIANCE_EPS = 1e-8
"""Number added to a variance over tokens before its root, as verl does."""
WHITENED = ("tokens", "responses")


@dataclass(frozen=True, kw_only=True)
class AdvantageEntry:
    """Advantage function with its description."""

    function: Advantage
    source: str
    quadrants: tuple[str, ...] = ()
    """Quadrants in which it differs from GRPO, as for controllers."""
    needs: tuple[str, ...] = ()
    """Keyword arguments that must be given."""
    uses: tuple[str, ...] = ()
    """Keyword arguments that may be given."""
    over_batch: bool = False
    """True if it depends on other groups, so that it takes `reduce` for a batch that is spread over several ranks."""
    hyperparameters: Mapping[str, tuple[str, str | tuple[str, ...]]] = field(default_factory=dict)
    """Keyword arguments with a default: meaning of each, and its allowed interval or names."""


REGISTRY: dict[str, AdvantageEntry] = {}
GROUP = "entrostat.advantages"
"""Group of entry points that declare advantages."""


def register(name: str, **about: Any) -> Callable[[Advantage], Advantage]:
    """Make the decorated function available to `get_advantage` as `name`. Raises ValueError on a name that is taken."""

    def add(function: Advantage) -> Advantage:
        @wraps(function)
        def computed(reward: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            _check(name, kwargs)
            # 1 / STD_EPS is beyond half precision, and booleans have no mean
            return function(reward.to(torch.promote_types(reward.dtype, torch.float32)), *args, **kwargs)

        if name in REGISTRY and not is_made_again(REGISTRY[name].function, computed):
            known = REGISTRY[name].function.__module__
            raise ValueError(f"advantage {name!r} is registered twice, in {known} and in {function.__module__}")
        REGISTRY[name] = AdvantageEntry(function=computed, **about)
        return computed

    return add


def get_advantage(name: str, reduce: LocalReduce | None = None) -> Advantage:
    """Return the advantage function called `name`; hyperparameters may follow the name: "qae k=0.6".

    A function elsewhere is `module:function`, or a name of a plug-in; with `register` it can declare what it needs.
    reduce: reduction over the whole batch, if the function is called with the responses of one of several ranks.
    Raises ValueError on an unknown name or hyperparameter; the message lists the known ones.
    """
    entry, settings = _asked(name)
    whole = {"reduce": reduce} if entry.over_batch else {}
    return partial(entry.function, **settings, **whole) if settings or whole else entry.function


def advantage_needs(name: str) -> tuple[str, ...]:
    """Return the keyword arguments that the advantage `name` needs beyond reward and group_id."""
    return _asked(name)[0].needs


def advantage_uses(name: str) -> tuple[str, ...]:
    """Return the keyword arguments that the advantage `name` takes: those it needs, and those it can do without."""
    entry = _asked(name)[0]
    return (*entry.needs, *entry.uses)


def _asked(name: str) -> tuple[AdvantageEntry, dict[str, Any]]:
    """Return the registry entry and the hyperparameters that follow its name."""
    word, _, given = name.partition(" ")
    if word not in REGISTRY:
        word = imported(word)
    entry, settings = REGISTRY[word], parse_settings(given.split())
    for key, value in settings.items():
        if key not in entry.hyperparameters:
            known = ", ".join(entry.hyperparameters) or "none"
            raise ValueError(f"advantage {word!r} has no hyperparameter {key!r}; it has {known}")
        words = isinstance(entry.hyperparameters[key][1], tuple)
        if not words and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"{key} of the advantage {word!r} must be a number; got {value!r}")
    _check(word, settings)
    return entry, settings


def imported(word: str) -> str:
    """Return the name of the advantage function at `module:function` or at an entry point; register it if needed.

    Raises a one-line ValueError if there is no such function.
    """
    place = outside("advantage", word, REGISTRY, GROUP, form="module:function")
    function = place.load()
    if not callable(function):
        raise ValueError(f"{place} is no function")
    for name, entry in REGISTRY.items():
        if entry.function is function:
            return name
    register(word, source=place.distribution or place.path)(function)
    return word


def _check(name: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError if a hyperparameter has a value that is not allowed; the message names it."""
    for key, (_, allowed) in REGISTRY[name].hyperparameters.items():
        if wrong := complaint(given.get(key), allowed):
            raise ValueError(f"{key} of the advantage {name!r} {wrong}; got {given[key]}")


def _centred(reward: Tensor, group_id: Groups) -> tuple[Tensor, Segments]:
    """Return R − group mean, (..., n), and the groups. Exactly 0 if all responses of a group have the same reward."""
    groups = as_segments(group_id)
    above = reward - groups.spread(groups.pick(reward))
    return above - groups.spread(groups.mean(above)), groups


def _per_deviation(centred: Tensor, groups: Segments) -> Tensor:
    """Return 1 / (unbiased standard deviation of the group + 1e-6), (..., n)."""
    variance = groups.sum(centred**2) / (groups.size - 1).clamp(min=1)
    return groups.spread(1 / (variance.sqrt() + STD_EPS))


@register("grpo", source="Shao et al. 2024 (GRPO)")
def grpo(reward: Tensor, group_id: Groups) -> Tensor:
    """(R − mean) / (std + 1e-6) with the unbiased standard deviation (GRPO). A group of one has advantage 0."""
    centred, groups = _centred(reward, group_id)
    return centred * _per_deviation(centred, groups)


@register("dr_grpo", source="Liu et al. 2025 (Dr. GRPO)")
def dr_grpo(reward: Tensor, group_id: Groups) -> Tensor:
    """R − mean, no division by the standard deviation (Dr. GRPO)."""
    return _centred(reward, group_id)[0]


@register("rloo", source="Ahmadian et al. 2024 (RLOO)")
def rloo(reward: Tensor, group_id: Groups) -> Tensor:
    """R − mean of the other members (RLOO). A group of one has advantage 0."""
    centred, groups = _centred(reward, group_id)
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
    centred, _ = _centred(reward, group_id)
    if over == "responses":
        variance = reduce.sum(centred**2) / (reduce.size(reward)[0] - 1).clamp(min=1)
        return centred / (variance.sqrt().unsqueeze(-1) + STD_EPS).to(centred)
    if length is None:
        count, above = torch.ones_like(centred), centred  # whose mean is 0
    else:
        count = length.to(centred).expand(centred.shape)
        mean = reduce.sum(count * centred) / reduce.sum(count).clamp(min=1)
        above = centred - mean.unsqueeze(-1).to(centred)
    variance = reduce.sum(count * above**2) / (reduce.sum(count) - 1).clamp(min=1)
    return above * (variance + VARIANCE_EPS).rsqrt().unsqueeze(-1).to(above)


@register("opo", source="Hao et al. 2025 (OPO)", needs=("length",))
def opo(reward: Tensor, group_id: Groups, *, length: Tensor | None = None) -> Tensor:
    """R_i − Σ_j l_j·R_j / Σ_j l_j over the group: the baseline weighs a response by its length.

    length: number of tokens of each response, (n,) or (..., n). Raises ValueError if it is not given.
    """
    weight = _needed("opo", "length", length).to(reward)
    groups = as_segments(group_id)
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
    centred, groups = _centred(reward, group_id)
    above = reward - groups.spread(quantile_within(reward, groups, k))
    return above * _per_deviation(centred, groups)


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
    return torch.where(_correct("w_reinforce", reward), column, -1.0)


@register("psr", source="Zhu et al. 2025 (PSR)", quadrants=("III", "IV"))
def psr(reward: Tensor, group_id: Groups) -> Tensor:
    """+1 for a correct response, 0 for a wrong one (positive sample reinforcement). Errors as in `w_reinforce`."""
    return _correct("psr", reward).to(reward.dtype)


@register("nsr", source="Zhu et al. 2025 (NSR)", quadrants=("I", "II"))
def nsr(reward: Tensor, group_id: Groups) -> Tensor:
    """0 for a correct response, −1 for a wrong one (negative sample reinforcement). Errors as in `w_reinforce`."""
    return _correct("nsr", reward).to(reward.dtype) - 1


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
    prm, ref = _needed("prime", "prm_logp", prm_logp), _needed("prime", "ref_logp", ref_logp)
    owner = _needed("prime", "response", response)
    if bool((owner.diff() < 0).any()):
        raise ValueError("advantage 'prime' takes tokens in the order of their responses: response must ascend")
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


def _reward_to_go(x: Tensor, response: Tensor, length: Tensor) -> Tensor:
    """Return the sum of x from each token to the end of its response, (..., N).

    response: index of each token's response, (..., N), ascending. length: tokens of each response, (..., n).
    """
    run = torch.nn.functional.pad(x.double().cumsum(-1), (1, 0))
    end = run.gather(-1, length.long().cumsum(-1))
    return (end.gather(-1, response) - run[..., 1:]).to(x.dtype) + x


def _needed(name: str, keyword: str, value: Tensor | None) -> Tensor:
    if value is None:
        raise ValueError(f"advantage {name!r} needs {keyword}=, which was not given")
    return value


def _correct(name: str, reward: Tensor) -> Tensor:
    """Return a mask (..., n) of the correct responses. Raises ValueError on a reward other than 0 and 1."""
    correct = reward == 1
    if not bool((correct | (reward == 0)).all()):
        raise ValueError(f"advantage {name!r} takes rewards of 0 and 1")
    return correct
