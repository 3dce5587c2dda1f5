"""Allowed values of dataclass fields, given by their annotations: an interval of numbers, or names to choose from.

tau: Annotated[float, "[0, 1)"] = 0.95
cap: Annotated[float, "(0, inf]"] = 2.0        may be infinite; any other number is finite
mode: Literal["bonus", "reweight"] = "bonus"

This module does not import torch, but checks tensors like numbers, and each number of a tuple. None passes: the type
decides if it is allowed.
"""

from collections.abc import Iterator
from inspect import get_annotations
from math import isfinite, isnan
from numbers import Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

PositiveInt = Annotated[int, "[1, inf)"]
NonNegativeInt = Annotated[int, "[0, inf)"]
PositiveFloat = Annotated[float, "(0, inf)"]
NonNegativeFloat = Annotated[float, "[0, inf)"]
Probability = Annotated[float, "[0, 1]"]
Allowed = str | tuple[str, ...] | None
"""Interval or names; None if only the type restricts the field."""


def allowed(cls: type, field: str) -> Allowed:
    """Return the allowed values from a field's annotation, in the class itself or else in its nearest base."""
    for base in cls.__mro__:
        hint = get_annotations(base).get(field)
        for part in _parts(hint):
            if get_origin(part) is Literal:
                return get_args(part)
            if isinstance(part, str) and part is not hint:
                return part
    return None


def _parts(hint: Any) -> Iterator[Any]:
    """Yield an annotation and its arguments; those of each member of a union, such as `PositiveInt | None`, too."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part) if get_origin(hint) in (Union, UnionType) else (part,)


def complaint(value: Any, allowed: Allowed) -> str | None:
    """Return the reason why a value is not allowed; None if it is. NaN is refused, ±inf unless the interval has it."""
    if value is None:
        return None
    if isinstance(allowed, tuple):
        return None if value in allowed else f"must be one of {', '.join(name or 'empty' for name in allowed)}"
    try:
        numbers = [float(number) for number in _extremes(value)]
    except OverflowError:
        return "is too large for a float64"
    interval = allowed or "(-inf, inf)"
    if any(map(isnan, numbers)):
        return "must be a number, not NaN"
    if "inf]" not in interval and not all(map(isfinite, numbers)):
        return "must be finite"
    least, most = map(float, interval[1:-1].split(", "))
    low, high = interval[0] == "[", interval[-1] == "]"
    if all((least < x or (low and x == least)) and (x < most or (high and x == most)) for x in numbers):
        return None
    if isfinite(most):
        return f"must lie in {interval}"
    if least == 0:
        return "must not be negative" if low else "must be positive"
    return f"must be {'at least' if low else 'above'} {least:g}"


def _extremes(value: Any) -> Iterator[Any]:
    """Yield the extreme numbers of a value: all its numbers are in an interval if these are. NaN counts as extreme."""
    if isinstance(value, Real):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _extremes(item)
    elif hasattr(value, "aminmax") and value.numel():
        yield from value.aminmax()
