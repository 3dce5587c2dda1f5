"""Numbers of a run: a metric's values with their steps, their medians, and where they lie beyond a bound for long."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST, ROWS = 255, 20_000
"""Upper limits for the values of a window that count, and for the windows that are in memory at a time."""


def numbers(metrics: Sequence[Mapping[str, Any]], name: str) -> tuple[NDArray[np.int64], Array]:
    """Return the steps at which a metric has a finite value, and the values, (n,) each."""
    pairs = [(line["step"], line[name]) for line in metrics if isinstance(line.get(name), int | float)]
    pairs = [pair for pair in pairs if np.isfinite(pair[1])]
    steps, values = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64)


def running_quantile(values: Array, window: int, share: float) -> Array:
    """Return a quantile of each `window` neighbours of the values (n,), (n − window + 1,); none if they are fewer.

    Of a long window MOST values, evenly spaced, count.
    """
    if len(values) < window:
        return values[:0]
    around = np.lib.stride_tricks.sliding_window_view(values, window)[:, :: -(-window // MOST)]
    parts = [np.quantile(around[start : start + ROWS], share, axis=1) for start in range(0, len(around), ROWS)]
    return np.concatenate(parts)


def running_median(values: Array, window: int) -> Array:
    """Return the medians of each `window` neighbours of the values (n,), (n − window + 1,)."""
    return running_quantile(values, window, 0.5)


def last_third(values: Array) -> Array:
    """Return the last third, of which there is at least one."""
    return values[-max(len(values) // 3, 1) :]


def lasting(holds: NDArray[np.bool_], length: int) -> int | None:
    """Return the first index from which `length` values in a row hold; None if there is none."""
    if len(holds) < length:
        return None
    rows = np.lib.stride_tricks.sliding_window_view(holds, length).all(1)
    return int(rows.argmax()) if rows.any() else None


def to_the_end(holds: NDArray[np.bool_], length: int) -> int | None:
    """Return the index from which all values hold, if they are at least `length`; else None."""
    start = 0 if holds.all() else len(holds) - int(holds[::-1].argmin())
    return start if len(holds) - start >= length else None
