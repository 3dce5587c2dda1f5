"""The law R = −a·e^H + b in one run: its points, its fit, and in words why not to trust it.

run log ─► points (entropy, outcome) ─► fit, alternatives, forecast of `entrostat.laws` ─► warnings
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrostat import laws
from entrostat.laws import Law, Prediction, Score

from .compare import Run

Array = NDArray[np.float64]

POOR = 0.9
"""R² below which a fit counts as poor."""
BENT = 10.0
"""How much lower the AIC of a parabola must be for the points to count as bent away from the law."""
NARROW = 0.1
"""Range of e^H below which no law can be told."""
FEW = 20
"""Points below which a fit is a guess."""


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
    warnings = (*_few(law), *_poor(law, against), *_bent(scores), *_narrow(entropy), *_held(run.config), *refused)
    return RunLaw(run.name, against, found, law, scores, prediction, warnings)


def target_of(config: Mapping[str, Any]) -> float | None:
    """The entropy that the controller of a run was told to hold, in trainer or simulator."""
    settings = config.get("controller_args") or {}
    named = [settings[key] for key in settings if key.rpartition(".")[2] == "target"]
    given = [config.get("target_entropy"), config.get("target"), *named]
    return next((float(value) for value in given if value is not None), None)


def _few(law: Law) -> list[str]:
    return [f"There are only {law.n} points: take the fit as a guess."] if law.n < FEW else []


def _poor(law: Law, against: str) -> list[str]:
    found = []
    if not law.r2 >= POOR:
        explained = f"{law.r2:.0%}" if law.r2 > 0 else "nothing"
        found.append(f"The fit is poor: the law explains {explained} of the variance of {against}.")
    if law.a <= 0:
        found.append(f"a is not positive ({law.a:.3g}): {against} did not rise as entropy fell.")
    elif law.a_interval[0] <= 0:
        found.append(f"The interval of a holds 0: this run does not show that entropy is traded for {against}.")
    return found


def _bent(scores: Mapping[str, Score]) -> list[str]:
    law, parabola = scores["exponential"], scores["quadratic"]
    if not law.aic - parabola.aic > BENT:
        return []
    return [
        f"A parabola in H fits clearly better (AIC {law.aic - parabola.aic:.0f} lower, adjusted R² "
        f"{parabola.adjusted_r2:.3f} against {law.adjusted_r2:.3f}): the points bend away from the law, and the true "
        "ceiling may lie outside its interval."
    ]


def _narrow(entropy: Array) -> list[str]:
    low, high = np.exp(entropy.min()), np.exp(entropy.max())
    if high - low < NARROW:
        return [f"e^H only went from {low:.3f} to {high:.3f}: that is too little to tell a law by."]
    if low - 1 > high - low:
        return [
            f"The run stays far from H = 0 (e^H from {low:.2f} to {high:.2f}): the ceiling is a long extrapolation."
        ]
    return []


def _held(config: Mapping[str, Any]) -> list[str]:
    target = target_of(config)
    if target is None:
        return []
    return [
        f"A controller held the entropy (target {target:g} nats): the points show its control, not what training left "
        "alone trades entropy for."
    ]
