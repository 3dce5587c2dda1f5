"""Reasons, in words, not to trust the law R = −a·e^H + b that was fitted to a run.

law, scores = laws.fit(entropy, reward), laws.alternatives(entropy, reward)
doubts(law, scores, entropy)          one sentence per reason; empty if there is none
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .laws import Law, Prediction, Score

POOR = 0.9
"""R² below which a fit counts as poor."""
BENT = 0.03
"""Gain in adjusted R² of a parabola above which the points bend away from the law."""
NARROW = 0.1
"""Range of e^H below which no law can be recognised."""
FEW = 20
"""Number of points below which a fit is a guess."""
HEATED = 1.05
"""Ratio of the highest to the lowest sampling temperature from which on entropies are not compared."""
DROPPED = (
    (re.compile(r"(?:train/)?num_gen_batches"), lambda value: value > 1),
    (re.compile(r"(?:train/)?dynamic_filtering_pass_rate"), lambda value: value < 100),
    (re.compile(r"rollout/(?:dynamic_filter/drop|dropped/dynamic_filter).*"), lambda value: value > 0),
    (re.compile(r"training/filter_groups/evicted_samples"), lambda value: value > 0),
)
"""Metrics of dynamic sampling, and when they tell of groups without a signal that were dropped.

They are the batches that verl's recipe of DAPO sampled for a step, the groups that OpenRLHF kept (%), and those that
slime, OpenRLHF and verl 0.9 dropped.
"""


def doubts(
    law: Law,
    scores: Mapping[str, Score],
    entropy: ArrayLike,
    *,
    prediction: Prediction | None = None,
    outcome: str = "reward",
    target: float | None = None,
) -> list[str]:
    """Return the reasons against a fit, one sentence each.

    Args:
        law, scores: results of `laws.fit` and `laws.alternatives`.
        entropy: entropies of the points (n,), nats.
        prediction: result of `laws.predict_end`; None without one.
        outcome: name of R.
        target: target entropy of the run's controller, nats; None without one.
    """
    points = np.asarray(entropy, dtype=np.float64)
    return [
        *_few(law),
        *_poor(law, outcome),
        *_bent(scores),
        *_narrow(points),
        *_forecast(prediction, outcome),
        *_held(target),
    ]


def heated(temperature: ArrayLike) -> str:
    """Return why a run's entropies are not comparable if its sampling temperature (n,) moved; "" if they are."""
    heat = np.asarray(temperature, dtype=np.float64)
    if heat.size == 0 or heat.min() <= 0 or heat.max() / heat.min() < HEATED:
        return ""
    return (
        f"the sampling temperature moved from {heat[0]:.3g} to {heat[-1]:.3g}, and the entropy is that of the samples: "
        "it rises and falls with the temperature alone"
    )


def of_kept_groups(metrics: Sequence[Mapping[str, Any]]) -> str:
    """Return why a run's reward is of the groups with a signal alone; "" if it may be of all.

    The mean over groups that are neither all right nor all wrong is nearer to a half than that over all: .41 in place
    of .25, and .59 of .75, in groups of 8 where p is Beta(.3, .9), and Beta(.9, .3).

    metrics: a mapping for each step, with the names of the run's own trainer where entrostat has none.
    """
    logged = sorted(set[str]().union(*metrics))
    for name, drops in ((name, drops) for name in logged for pattern, drops in DROPPED if pattern.fullmatch(name)):
        values = [line[name] for line in metrics if isinstance(line.get(name), int | float)]
        if told := next(filter(drops, values), None):
            return f"the reward is of the groups that dynamic sampling kept ({name} is {told:.3g})"
    return ""


def _few(law: Law) -> list[str]:
    return [f"There are only {law.n} points: take the fit as a guess."] if law.n < FEW else []


def _poor(law: Law, outcome: str) -> list[str]:
    found = []
    if not law.r2 >= POOR:
        explained = f"{law.r2:.0%}" if law.r2 > 0 else "nothing"
        found.append(f"The fit is poor: the law explains {explained} of the variance of {outcome}.")
    if law.a <= 0:
        found.append(f"a is not positive ({law.a:.3g}): {outcome} did not rise as entropy fell.")
    elif law.a_interval[0] <= 0:
        found.append(f"The interval of a contains 0: this run does not show that entropy is traded for {outcome}.")
    return found


def _bent(scores: Mapping[str, Score]) -> list[str]:
    more = scores["quadratic"].adjusted_r2 - scores["exponential"].adjusted_r2
    if not more > BENT:
        return []
    return [
        f"A parabola in H explains {100 * more:.0f}% more of the variance: the points bend away from the law, and the "
        "true ceiling may lie outside its interval."
    ]


def _narrow(entropy: NDArray[np.float64]) -> list[str]:
    low, high = np.exp(entropy.min()), np.exp(entropy.max())
    if high - low < NARROW:
        return [f"e^H only went from {low:.3f} to {high:.3f}: that range is too small to recognise a law."]
    if low - 1 > high - low:
        return [
            f"The run stays far from H = 0 (e^H from {low:.2f} to {high:.2f}): the ceiling is a long extrapolation."
        ]
    return []


def _forecast(prediction: Prediction | None, outcome: str) -> list[str]:
    found = []
    if prediction and not prediction.beats_constant:
        found.append(
            f"A constant predicts the rest better than the law does: {prediction.constant:.3g}, with which the first "
            f"{prediction.law.n} points end, has an RMSE of {prediction.constant_rmse:.3g}, "
            f"the law {prediction.rmse:.3g}."
        )
    if prediction and not prediction.within:
        found.append(
            f"The law predicts an end of {prediction.predicted[-1]:.3g}, which is no {outcome} of this run: they go "
            f"from {prediction.least:.3g} to {prediction.most:.3g}."
        )
    return found


def _held(target: float | None) -> list[str]:
    if target is None:
        return []
    return [
        f"A controller held the entropy (target {target:g} nats): the points show its control, not how training "
        "without control trades entropy for reward."
    ]
