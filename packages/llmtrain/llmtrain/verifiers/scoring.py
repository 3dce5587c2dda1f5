"""Call of a user's reward function in a checker process: arguments by name, rewards of one group of responses."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from .own_error import OwnError, told

ONE, GROUP = ("response", "solution_str"), "responses"
"""Names of the parameter for one response, and for those of a whole group."""


def scored(function: Callable[..., Any], group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to one group: `scores`, and in `lost` the kind of failure of each response, or None.

    If a call raised, `raised` tells the first error, see own_error.
    """
    known = inspect.signature(function).parameters
    everything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    ours = (*ONE, GROUP)  # never a column of the file that has one of these names
    given = {name: value for name, value in group.items() if name not in ours and (everything or name in known)}
    if GROUP in known:
        calls = [(given | {GROUP: group[GROUP]}, len(group[GROUP]))]
    else:
        names = [name for name in ONE if name in known] or ONE[:1]
        calls = [(given | dict.fromkeys(names, response), 1) for response in group[GROUP]]
    scores: list[float] = []
    lost: list[str | None] = []
    first: dict[str, OwnError] = {}
    for arguments, count in calls:
        try:
            found = function(**arguments)
            scores += _numbers(found if GROUP in known else [found], count)
            lost += [None] * count
        except Exception as error:  # a user's function may raise anything; only this call fails
            first = first or {"raised": told(error, function)}
            scores += [0.0] * count
            lost += ["error"] * count
    return {"scores": scores, "lost": lost, "failure": None, **first}


def _numbers(found: Any, count: int) -> list[float]:
    """Return finite numbers. Raise ValueError unless there are `count` of them."""
    numbers = [float(x) for x in found]
    if len(numbers) != count:
        raise ValueError(f"{len(numbers)} numbers for {count} responses")
    if strange := [x for x in numbers if not math.isfinite(x)]:
        raise ValueError(f"a reward of {strange[0]}, which is no finite number")
    return numbers
