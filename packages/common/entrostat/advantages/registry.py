"""Advantages by name: functions of the rewards of a group of responses to one prompt.

Every function takes `reward` (..., n), one number per response, and `group_id` (n,) or (..., n), integers that are
equal for responses to the same prompt, or their `Segments`, and returns (..., n), at least float32. Leading dimensions
are independent runs. A reward that is not finite raises ValueError: it would spoil its group. Further inputs are passed
by keyword: `advantage_needs(name)` lists them. Only `prime` and `optimal_token` return one number per token.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

from ..numbers.reduce import LocalReduce
from ..numbers.segments import Segments
from ..settings.allowed import complaint
from ..settings.commandline import parse_settings
from ..settings.importing import is_made_again, outside
from .inputs import check_tensors, check_told

Advantage = Callable[..., Tensor]
Groups = Tensor | Segments


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
            check_tensors(name, reward, *args[:1], **kwargs)
            if not torch.compiler.is_compiling():
                if not bool(reward.isfinite().all()):
                    raise ValueError(f"advantage {name!r}: a reward is not finite; give such a response the reward 0")
                check_told(name, reward, kwargs)
            with torch.no_grad():  # an advantage is a constant of the loss
                found = torch.as_tensor(function(_wide(reward), *args, **kwargs))
            kept = torch.promote_types(reward.dtype, torch.float32)
            return found if found.dtype == torch.float64 and _told_in_double(kwargs) else found.to(kept)

        if name in REGISTRY and not is_made_again(REGISTRY[name].function, computed):
            known = REGISTRY[name].function.__module__
            raise ValueError(f"advantage {name!r} is registered twice, in {known} and in {function.__module__}")
        REGISTRY[name] = AdvantageEntry(function=computed, **about)
        return computed

    return add


EXACT = 2.0**24
"""Integer up to which float32 has every integer."""
LARGE = 1e15
"""Size of a number from which float32 would lose its squares."""


def _wide(reward: Tensor) -> Tensor:
    """Return rewards in the precision of the computation.

    1 / STD_EPS is beyond half precision; large integers, and the squares of large numbers, are beyond float32.
    """
    wide = torch.promote_types(reward.dtype, torch.float32)
    if torch.compiler.is_compiling() or not reward.numel() or reward.dtype == torch.bool:
        return reward.to(wide)
    limit = LARGE if reward.is_floating_point() else EXACT
    return reward.to(torch.float64 if float(reward.double().abs().max()) > limit else wide)


def _told_in_double(given: Mapping[str, Any]) -> bool:
    """Return True if an input beside rewards and groups is float64, so that the advantage is."""
    return any(isinstance(value, Tensor) and value.dtype == torch.float64 for value in given.values())


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


def advantage_settings(name: str) -> dict[str, Any]:
    """Return the hyperparameters that follow the name, as in "qae k=0.6"."""
    return _asked(name)[1]


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


def needed(name: str, keyword: str, value: Tensor | None) -> Tensor:
    if value is None:
        raise ValueError(f"advantage {name!r} needs {keyword}=, which was not given")
    return value
