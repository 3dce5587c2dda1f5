"""Check of values from YAML, command lines and callers against the annotations of a dataclass."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

NAMES = {
    int: "integer",
    float: "finite number",
    str: "text",
    bool: "true or false",
    dict: "mapping",
    Mapping: "mapping",
    NoneType: "null",
}


def fit_fields(cls: type, values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return `values` converted to the annotated types of the dataclass `cls`; `where` prefixes names in errors.

    Raises ValueError on a key that is not a field, and on a value of the wrong type; the message names the key.
    """
    hints = _annotations(cls)
    fitting = {}
    for key, value in values.items():
        if key not in hints:
            raise ValueError(f"unknown key {where}{key}; choose from {', '.join(sorted(hints))}")
        try:
            fitting[key] = fit(value, hints[key])
        except ValueError:
            raise ValueError(f"{where}{key} must be of type {words(hints[key])}; got {value!r}") from None
    return fitting


@cache
def _annotations(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def fit(value: Any, hint: Any) -> Any:
    """Return a value converted to the type of a hint. Raises ValueError if it has another type.

    Lists become tuples and integers floats. Booleans are not numbers, and numbers must be finite.
    """
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        for kind in inner:
            with suppress(ValueError):
                return fit(value, kind)
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        kinds = inner[:1] * len(value) if inner[-1] is ... else inner
        return tuple(fit(item, kind) for item, kind in zip(value, kinds, strict=True))
    if not isinstance(value, bool):
        if hint is float and isinstance(value, Real) and isfinite(value):
            return float(value)
        if hint is int and isinstance(value, Integral):
            return int(value)
    if hint in (int, float) or not isinstance(value, get_origin(hint) or hint):
        raise ValueError
    return value


def words(hint: Any) -> str:
    """Return the name of a type hint in YAML's terms."""
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        return " or ".join(map(words, inner))
    if get_origin(hint) is tuple:
        return f"[{', '.join('...' if kind is ... else words(kind) for kind in inner)}]"
    return NAMES[get_origin(hint) or hint]
