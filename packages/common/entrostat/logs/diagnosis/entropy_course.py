"""Course of a run's entropy: falls, explosions and peaks, each with its step, in runs of any noise.

entropy_course(steps, [0.5, 0.4, 0.1, ...])     Course(first=.5, fell=Fall(...), exploded=None, peaked=None)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .numbers import Array, lasting, running_median, running_quantile, to_the_end

LASTS = 5
"""Logged values in a row that an event must last, or whose median counts; more in a noisy run, as many as the running
median takes, and in a long one, a twentieth of it."""
TOLERATED = 0.2
"""Relative noise of the entropy down to which it is smoothed, by running medians."""
FELL = 1 / 3
"""Share of the first entropy at or below which it fell."""
EXPLODED = 3.0
"""The same at or above which it exploded, unless a controller has a target of that size."""
DOUBLED, HIGHER = 2.0, 0.5
"""Share of the first entropy, or of the target, that is an explosion too if it is this much above it (nats) and so
remains to the end."""
UPPER = 0.75
"""Quantile of neighbouring entropies that counts as a burst if it is HIGHER above the first too: an entropy that
explodes in some batches alone has a low median."""
ROSE = 1.5
"""Share of the first entropy from which on a peak of it is a rise, and the end of a fallen entropy an explosion."""


class Fall(NamedTuple):
    """Entropy that fell: when it had, and the lowest value (nats) with its step."""

    step: int
    low: float
    low_step: int


class Peak(NamedTuple):
    """Entropy that rose and then fell: its peak (nats), the step of FELL of it, and the lowest value after that."""

    high: float
    high_step: int
    step: int
    low: float
    low_step: int


class Course(NamedTuple):
    """Events of the entropy; None for what did not happen."""

    first: float | None
    """First logged entropy (nats); in a noisy run the first running median."""
    fell: Fall | None
    exploded: tuple[int, float] | None
    """Step from which the entropy exploded, and its highest value (nats)."""
    peaked: Peak | None
    """Rise and fall of the entropy that `fell` does not tell, because it ends above a third of the first value."""


def entropy_course(at: NDArray[np.int64], entropy: Array, target: float | None = None) -> Course:
    """Return the events of an entropy (n,), nats, at steps (n,).

    target: target entropy (nats), near which an entropy does not count as exploded.
    """
    if not len(entropy) or entropy[0] <= 0:
        return Course(None, None, None, None)
    window, length = smoothing(entropy), max(LASTS, len(entropy) // 20)
    smooth = running_median(entropy, window)
    steps, first = at[window // 2 :][: len(smooth)], float(smooth[0])
    long = max(length, window)
    exploded = _exploded(at, entropy, max(first, target or 0.0), (smooth, window, long))
    fell = None
    if (start := lasting(smooth <= FELL * first, long)) is not None:
        burst = int(np.searchsorted(steps, exploded[0])) if exploded else 0
        low = start + int(smooth[start : burst if burst > start else None].argmin())
        fell = Fall(int(steps[start]), float(smooth[low]), int(steps[low]))
    peaked = _peaked(steps, smooth, long)
    if peaked and fell and fell.low_step >= peaked.step:
        peaked = None
    return Course(first, fell, exploded, peaked)


def _exploded(
    at: NDArray[np.int64], entropy: Array, usual: float, smoothed: tuple[Array, int, int]
) -> tuple[int, float] | None:
    """Return the step from which an entropy explodes, and how high it gets (nats); None if it does not.

    usual: its first value, or its target. smoothed: its running medians, their window, and how many of them must last.
    """
    smooth, window, long = smoothed
    found = []
    if (start := lasting(smooth >= EXPLODED * usual, long)) is not None:
        found.append((start + window // 2, float(smooth[start:].max())))
    length = max(LASTS, len(entropy) // 20)
    fallen = lasting(smooth <= FELL * usual, long) is not None
    burst, end, again = (max(factor * usual, usual + HIGHER) for factor in (EXPLODED, DOUBLED, ROSE))
    for share, bound, holding, count, width in (
        (UPPER, burst, lasting, LASTS, length),
        (0.5, end, to_the_end, LASTS // 2 + 1, length),
        *([(0.5, again, to_the_end, LASTS // 2 + 1, LASTS)] if fallen else []),
    ):
        around = running_quantile(entropy, width, share)
        if (start := holding(around >= bound, count)) is not None:
            begun = start + int((entropy[start : start + width] >= bound).argmax())
            found.append((begun, float(around[start:].max())))
    return (int(at[min(found)[0]]), max(high for _, high in found)) if found else None


def smoothing(entropy: Array) -> int:
    """Return the length of a running median that leaves a relative noise of TOLERATED; 1 for a smooth entropy (n,).

    The noise is that of successive values, so a steady fall or rise counts as none.
    """
    if len(entropy) < 2 * LASTS:
        return 1
    steps = np.diff(np.log(np.maximum(entropy, np.finfo(float).tiny)))
    noise = float(np.quantile(np.abs(steps - np.median(steps)), 0.6827) / np.sqrt(2))
    return int(np.clip(np.ceil((noise / TOLERATED) ** 2), 1, len(entropy) // 5))


def _peaked(at: NDArray[np.int64], entropy: Array, length: int) -> Peak | None:
    """Return the first fall of an entropy (n,) to FELL of a peak that is ROSE times its first value or more."""
    if len(entropy) < 2 * LASTS:
        return None
    medians = running_median(entropy, LASTS)
    peaks = np.maximum.accumulate(medians)
    start = lasting((medians <= FELL * peaks) & (peaks >= ROSE * entropy[0]), length)
    if start is None:
        return None
    around = int(medians[: start + 1].argmax())
    top = around + int(entropy[around : around + LASTS].argmax())
    low = start + int(entropy[start:].argmin())
    return Peak(float(entropy[top]), int(at[top]), int(at[start + LASTS // 2]), float(entropy[low]), int(at[low]))
