"""Measurements that several claims and pictures share, remembered so that each is made once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
REMEMBERED: list[dict[Any, Any]] = []
"""Results of each remembered function by its arguments."""


def remember(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with its results kept by arguments, until `forgotten`. Do not write to a result."""
    results: dict[Any, R] = {}
    REMEMBERED.append(results)

    @wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        key = args, tuple(sorted(kwargs.items()))
        if key not in results:
            results[key] = function(*args, **kwargs)
        return results[key]

    return remembered


@contextmanager
def forgotten() -> Iterator[None]:
    """Run the block without the results remembered before, and restore them after it; those of the block are lost."""
    before = [dict(results) for results in REMEMBERED]
    try:
        for results in REMEMBERED:
            results.clear()
        yield
    finally:
        for results, kept in zip(REMEMBERED, before, strict=False):
            results.clear()
            results.update(kept)
