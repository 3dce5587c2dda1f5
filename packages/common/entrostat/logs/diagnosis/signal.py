"""Signal of a run: the share of its groups, or of its steps, in which no response has an advantage.

without_signal([{"step": 0, "advantage/max": 0.0, "advantage/min": 0.0}, ...])     {"steps/no_signal": array([1., ...])}
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .numbers import Array, numbers

ROUNDED = 0.01
"""Share of the run's largest spread of advantages up to which a spread is rounding: a mean of equal rewards may differ
from them in the last digit, which a division by their deviation makes a hundredth."""
NO_SIGNAL = {"groups/no_signal", "tokens/no_signal", "steps/no_signal", "steps/unsolved", "reward/same"}
"""Levels of events.py that tell a run without a signal."""
QUADRANTS = tuple(f"quadrant/{name}" for name in ("exploitation", "exploration", "suppression", "correction"))
READ = (
    *QUADRANTS,
    *("groups/kept", "groups/mixed", "groups/all_right", "groups/all_wrong", "solved"),
    *("advantage/max", "advantage/min", "advantage/std", "reward/std"),
)
"""Metrics that are looked at, beside those that are told themselves."""
FEWEST = 5
"""Logged values below which nothing is said."""


def without_signal(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Return the share of groups or tokens without a signal if it is logged, else 0 or 1 a step; {} if nothing tells.

    A trainer logs the share, how many groups are mixed or kept, or the quadrants of its tokens, which leave over those
    without an advantage. A step has no signal if its advantages, or the rewards within its groups, do not differ, or if
    its gradient is 0. Where it is logged how many tasks are solved: `steps/unsolved`, 1 for a step in which none is.
    """
    solved = numbers(metrics, "solved")[1]
    found = {"steps/unsolved": (solved == 0).astype(np.float64)} if len(solved) >= FEWEST else {}
    for share in (numbers(metrics, "groups/no_signal")[1], 1 - numbers(metrics, "groups/kept")[1], _not_mixed(metrics)):
        if len(share):
            return found | {"groups/no_signal": share}
    if len(tokens := _tokens(metrics)):
        return found | {"tokens/no_signal": tokens}
    for values, rounded in (
        (_spread(metrics), ROUNDED),
        (numbers(metrics, "advantage/std")[1], ROUNDED),
        (numbers(metrics, "reward/std")[1], 0.0),
        (numbers(metrics, "grad_norm")[1], 0.0),
    ):
        if len(values) >= FEWEST:
            return found | {"steps/no_signal": (values <= rounded * values.max()).astype(np.float64)}
    return found


def _not_mixed(metrics: Sequence[Mapping[str, Any]]) -> Array:
    """Return the share of groups whose rewards do not differ, of each step that tells; mixed ones may be counted."""
    mixed, right, wrong = (_by_step(metrics, f"groups/{kind}") for kind in ("mixed", "all_right", "all_wrong"))
    equal = {step: right.get(step, 0.0) + wrong.get(step, 0.0) for step in right | wrong}
    shares = []
    for step, some in mixed.items():
        if step in equal or some <= 1:  # a count alone tells nothing
            groups = some + equal.get(step, 1 - some)
            shares.append(1 - some / groups if groups > 0 else 1.0)
    return np.array(shares, dtype=np.float64)


def _tokens(metrics: Sequence[Mapping[str, Any]]) -> Array:
    """Return the share of tokens without an advantage, which the quadrants leave over, of steps that have all four."""
    parts = [_by_step(metrics, name) for name in QUADRANTS]
    whole = parts[0].keys() & parts[1].keys() & parts[2].keys() & parts[3].keys()
    return np.array([1 - sum(part[step] for part in parts) for step in sorted(whole)], dtype=np.float64)


def _by_step(metrics: Sequence[Mapping[str, Any]], name: str) -> dict[int, float]:
    return dict(zip(*(values.tolist() for values in numbers(metrics, name)), strict=True))


def _spread(metrics: Sequence[Mapping[str, Any]]) -> Array:
    """Return the largest minus the smallest advantage of each step that has both, (n,)."""
    high, low = (_by_step(metrics, f"advantage/{end}") for end in ("max", "min"))
    return np.array([high[step] - low[step] for step in high if step in low], dtype=np.float64)
