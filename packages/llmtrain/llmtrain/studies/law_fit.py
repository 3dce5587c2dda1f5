"""Law R = −a·e^H + b of one run: its points, its fit, and warnings about the fit.

run log ─► points (entropy, outcome) ─► fit, alternatives, forecast of `entrostat.logs.laws` ─► warnings
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrostat.logs import laws
from entrostat.logs.doubts import doubts, heated, of_kept_groups
from entrostat.logs.laws import Law, Prediction, Score

from .comparison import Run

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a run for the law, (n,) each."""

    step: NDArray[np.int64]
    entropy: Array
    """Entropy in nats."""
    outcome: Array
    """Reward, or another metric instead."""


@dataclass(frozen=True, eq=False)
class RunLaw:
    """Law of one run: fit, alternatives, forecast and warnings."""

    name: str
    against: str
    """Metric that the law describes."""
    points: Points
    law: Law
    scores: Mapping[str, Score]
    """Scores of the curves `exponential`, `linear` and `quadratic`."""
    prediction: Prediction | None
    """Forecast from the first share of the points; None if these are too few or too similar."""
    warnings: tuple[str, ...]
    """Sentences with doubts about the fit; empty if there are none."""


def points(run: Run, against: str = "reward") -> Points:
    """Return the points of a run: values of the metric `against` with the entropy of the nearest step.

    The earlier of two equally near steps counts. Raises ValueError with the run's metrics if `against` or the entropy
    is missing.
    """
    step, outcome = run.series(against)
    at, entropy = run.series("entropy")
    for key, values in (("entropy", entropy), (against, outcome)):
        if not len(values):
            names = sorted({name for line in run.metrics for name, value in line.items() if value is not None})
            there = ", ".join(name for name in names if name != "step") or "none"
            hint = " (OpenRLHF logs it with --actor.entropy_coef 0)" if run.imported and key == "entropy" else ""
            raise ValueError(f"{run.name} has logged no {key!r}{hint}; its metrics: {there}")
    nearest = np.abs(at[:, None] - step).argmin(0)
    return Points(step, entropy[nearest], outcome)


def fit_run(run: Run, against: str = "reward", share: float = 0.15) -> RunLaw:
    """Return the law of a run, with a forecast from the first `share` of its points.

    Raises ValueError, naming the run, if there are fewer than 4 points or the entropy does not vary.
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
    against_it = doubts(law, scores, entropy, prediction=prediction, outcome=against, target=run.target)
    kept = of_kept_groups(run.metrics) if against == "reward" else ""
    for reason in filter(None, (kept, heated(run.series("temperature")[1]))):
        against_it = [f"Do not use this fit: {reason}.", *against_it]
    return RunLaw(run.name, against, found, law, scores, prediction, (*against_it, *refused))
