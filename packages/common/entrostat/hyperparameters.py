"""What a hyperparameter may be, said by its annotation: an interval of numbers, or names to choose from.

tau: Annotated[Number, "[0, 1)"] = 0.95
cap: Annotated[Number, "(0, inf]"] = 2.0        may be infinite; any other number is finite
mode: Annotated[str, MODES] = "bonus"
"""

from inspect import get_annotations
from numbers import Real
from typing import Annotated, Any

import torch
from torch import Tensor

Number = float | Tensor
"""A tensor has one value for each leading run, (runs…,)."""
NotNegative = Annotated[Number, "[0, inf)"]
Positive = Annotated[Number, "(0, inf)"]
Share = Annotated[Number, "[0, 1]"]
Allowed = str | tuple[str, ...] | None
"""An interval, names, or nothing but what the type says."""


def allowed(cls: type, hyperparameter: str) -> Allowed:
    """What the annotation of a field says that it may be; where a subclass says nothing, that of its base."""
    for base in cls.__mro__:
        said = getattr(get_annotations(base).get(hyperparameter), "__metadata__", ())
        if said:
            return said[0]
    return None


def complaint(value: Any, allowed: Allowed) -> str | None:
    """What is wrong with a value; None when nothing is. A number is never NaN, and finite unless it may be infinite."""
    if isinstance(allowed, tuple):
        return None if value in allowed else f"must be one of {', '.join(allowed)}"
    if allowed is None and not isinstance(value, Real | Tensor):
        return None
    try:
        number, interval = torch.as_tensor(value, dtype=torch.float64), allowed or "(-inf, inf)"
    except OverflowError:
        return "is too large for a float64"
    if bool(number.isnan().any()):
        return "must be a number, not NaN"
    if "inf]" not in interval and not bool(number.isfinite().all()):
        return "must be finite"
    least, most = interval[1:-1].split(", ")
    closed = interval[0] == "["
    above, below = torch.ge if closed else torch.gt, torch.le if interval[-1] == "]" else torch.lt
    if bool((above(number, float(least)) & below(number, float(most))).all()):
        return None
    if most != "inf":
        return f"must lie in {interval}"
    if least == "0":
        return "must not be negative" if closed else "must be positive"
    return f"must be {'at least' if closed else 'above'} {least}"
