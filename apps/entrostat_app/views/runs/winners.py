"""Comparison of experiments by their ends: at the same place, unsmoothed, with intervals.

    end = ends(groups, panels["reward"], "reward")["demo/grpo"]
    end.value, end.error           mean, and its standard error over seeds, questions or parts of the run

Experiments are compared where the shortest of them ends. An evaluation counts with its last value, any other metric
with its mean over the last third of the steps up to there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from scipy.special import stdtrit

from .run_curves import Curve
from .run_log import Array, Log

CONFIDENCE = 0.95
PARTS = 5
"""Number of parts of a run whose means stand for its fluctuation, if it has a single seed and no interval."""


@dataclass(frozen=True)
class End:
    """Value of a metric where experiments are compared."""

    value: float
    error: float
    """Standard error; NaN if nothing tells it."""
    freedom: float
    """Degrees of freedom of the error."""
    over: str
    """Unit whose variation the error is from: seeds, questions or steps."""
    count: int
    """Number of seeds."""


@dataclass(frozen=True)
class Behind:
    """Difference between an experiment and the one with the highest value."""

    mean: float
    half: float
    """Half the width of its interval."""

    @property
    def apart(self) -> bool:
        return abs(self.mean) > self.half


def matched(lines: Sequence[Curve]) -> float:
    """Return the last place on the time axis that all lines reach."""
    return min(float(line.x[-1]) for line in lines)


def is_evaluation(groups: Mapping[str, Sequence[Log]], metric: str) -> bool:
    """Return True if a metric was logged with the ends of its interval."""
    return any(f"{metric}/low" in log.metrics for logs in groups.values() for log in logs)


def ends(groups: Mapping[str, Sequence[Log]], lines: Sequence[Curve], metric: str) -> dict[str, End]:
    """Return the value of each line at the place where all are compared, by name."""
    at, evaluated = matched(lines), is_evaluation(groups, metric)
    found = {}
    for line in lines:
        raw = line.raw[:, line.x <= at]
        if raw.shape[1]:
            late = raw[:, -1:] if evaluated else raw[:, -max(raw.shape[1] // 3, 1) :]
            found[line.name] = _end(late, _question_error(groups[line.name], metric, raw.shape[1] - 1))
    return found


def _end(late: Array, question_error: float) -> End:
    means = late.mean(1)
    if len(means) > 1:
        return End(
            float(means.mean()), float(means.std(ddof=1)) / sqrt(len(means)), len(means) - 1, "seeds", len(means)
        )
    if np.isfinite(question_error):
        return End(float(means[0]), question_error, inf, "questions", 1)
    if late.shape[1] < 2 * PARTS:
        return End(float(means[0]), float("nan"), inf, "seeds", 1)
    parts = np.array([part.mean() for part in np.array_split(late[0], PARTS)])
    return End(float(means[0]), float(parts.std(ddof=1)) / sqrt(PARTS), PARTS - 1, "steps", 1)


def _question_error(logs: Sequence[Log], metric: str, place: int) -> float:
    """Return the standard error over questions that a single run logged with its value; NaN without one."""
    low, high = (logs[0].metrics.get(f"{metric}/{end}") for end in ("low", "high"))
    if low is None or high is None or place >= min(low.values.shape[1], high.values.shape[1]):
        return float("nan")
    return float(high.values[0, place] - low.values[0, place]) / 2 / float(stdtrit(inf, 0.975))


def behind(best: End, other: End, others: int) -> Behind:
    """Return how far `other` is below `best`, with an interval that holds for `others` such differences together."""
    parts = np.array([best.error, other.error]) ** 2
    total = float(parts.sum())
    spread = float((parts**2 / np.array([best.freedom, other.freedom])).sum())
    freedom = total**2 / spread if spread > 0 else inf  # Welch and Satterthwaite
    width = float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / others))
    return Behind(other.value - best.value, width * sqrt(total))


def sentence(name: str, found: Mapping[str, End]) -> str:
    """Return who ends highest in a metric, who ends lower, and who cannot be told apart from the highest."""
    top = max(found, key=lambda key: found[key].value)
    best = found[top]
    told = [f"{name}: highest in {top}, {shown(best)}."]
    others = sorted((key for key in found if key != top), key=lambda key: -found[key].value)
    distances = {key: behind(best, found[key], len(others)) for key in others}
    unknown = [key for key in others if np.isnan(distances[key].half)]
    lower = [key for key in others if distances[key].apart]
    alike = [key for key in others if key not in unknown and key not in lower]
    if lower:
        told.append(f"Lower: {', '.join(f'{key} {shown(found[key])}' for key in lower)}.")
    if alike:
        parts = (
            f"{key} ({distances[key].mean:+.2g} ± {distances[key].half:.2g}{more(best, distances[key])})"
            for key in alike
        )
        told.append(f"Cannot be told apart from it: {', '.join(parts)}.")
    if unknown:
        parts = (f"{key} {shown(found[key])}" for key in unknown)
        told.append(f"With one seed and few values, nothing tells how far they vary: {', '.join(parts)}.")
    return " ".join(told)


def shown(end: End) -> str:
    """Return a value with half its own 95% interval."""
    if np.isnan(end.error):
        return f"{end.value:.3g}"
    return f"{end.value:.3g} ± {float(stdtrit(end.freedom, (1 + CONFIDENCE) / 2)) * end.error:.2g}"


def more(best: End, distance: Behind) -> str:
    """Return how much more would tell a difference of this size apart; empty if there is none."""
    if not distance.mean:
        return ""
    factor = (distance.half / distance.mean) ** 2
    if factor > 1000:
        return ""
    if best.over == "seeds":
        return f"; about {ceil(best.count * factor) - best.count} more seeds each"
    return f"; about {ceil(factor)} times as many {best.over}"
