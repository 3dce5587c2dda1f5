"""The law R = −a·e^H + b in one run: its points, its fit, and in words why not to trust it.

run log ─► points (entropy, outcome) ─► fit, alternatives, forecast of `entrostat.laws` ─► warnings
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrostat import laws
from entrostat.doubts import doubts
from entrostat.laws import Law, Prediction, Score

from .comparison import Run

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Points:
    """What of a run the law is about, (n,) each."""

    step: NDArray[np.int64]
    entropy: Array
    """Nats."""
    outcome: Array
    """The reward, or the metric that stands in for it."""


@dataclass(frozen=True, eq=False)
class RunLaw:
    """All that is known of the law in one run."""

    name: str
    against: str
    """The metric whose law it is."""
    points: Points
    law: Law
    scores: Mapping[str, Score]
    """`exponential`, `linear` and `quadratic`."""
    prediction: Prediction | None
    """From the first share of the points; None when these are too few, or alike."""
    warnings: tuple[str, ...]
    """Sentences; none when nothing speaks against the fit."""


def points(run: Run, against: str = "reward") -> Points:
    """The points of a run: the values of the metric `against`, each with the entropy of the nearest step, the earlier
    of two.

    Raises ValueError, which lists the metrics that there are, when the run has none of that name, or no entropy.
    """
    step, outcome = run.series(against)
    at, entropy = run.series("entropy")
    for key, values in (("entropy", entropy), (against, outcome)):
        if not len(values):
            names = sorted({name for line in run.metrics for name, value in line.items() if value is not None})
            there = ", ".join(name for name in names if name != "step") or "none"
            raise ValueError(f"{run.name} has logged no {key!r}; its metrics: {there}")
    nearest = np.abs(at[:, None] - step).argmin(0)
    return Points(step, entropy[nearest], outcome)


def fit_run(run: Run, against: str = "reward", share: float = 0.15) -> RunLaw:
    """The law of a run and its forecast from the first `share` of its points.

    Raises ValueError, one line that names the run, when there are fewer than 4 points or the entropy does not vary.
    """
    found = points(run, against)
    entropy, outcome = found.entropy, found.outcome
    try:
        law, scores = laws.fit(entropy, outcome), laws.alternatives(entropy, outcome)
    except ValueError as error:
        raise ValueError(f"{run.name}: {error}") from None
    prediction, refused = None, []
    try:
        prediction = laws.predict_end(entropy, outcome, share)
    except ValueError as error:
        if not 0 < share < 1:
            raise
        refused.append(f"The end is not predicted: {error}.")
    against_it = doubts(law, scores, entropy, outcome=against, target=run.target)
    return RunLaw(run.name, against, found, law, scores, prediction, (*against_it, *refused))
