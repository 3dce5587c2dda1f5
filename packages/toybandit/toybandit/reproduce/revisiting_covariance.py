"""Figures 13 to 17 of Revisiting Entropy: the covariance of log π and advantage as a predictor of the entropy change.

The covariances use the policy and the expected advantage of its samples; they ignore that samples are dropped or
weighted.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from entrostat.numbers.correlation import spearman

from ..config import Config
from ..trajectory import Array
from ..uncertainty import band, jackknife
from .curves import size, stack
from .drawing import colour
from .registry import Effort, Measurement, figure
from .revisiting_entropy import TARGET
from .snapshots import covariances

SNAPSHOTS = 40
"""Number of rollouts of a run at which the policy is examined."""
UPDATES = 4
"""Updates per rollout in the settings with several."""
SETTINGS: Mapping[int, tuple[str, Mapping[str, Any]]] = {
    13: ("one update on a rollout", {"env": "on"}),
    14: (f"{UPDATES} updates on a rollout", {"passes": UPDATES}),
    15: ("A ≥ 0 only", {"passes": UPDATES, "controller": "positive_only"}),
    16: ("A ≤ 0 only", {"passes": UPDATES, "controller": "negative_only"}),
    17: (
        "entropy-guided reweighting",
        {
            "passes": UPDATES,
            "controller": "positive_reweight",
            "target": TARGET,
            "controller_args": {"delta": 0.05},
        },
    ),
}
LABELS = ("−ΔH (nats)", "Cov(log π, π·A)", "Cov(log π, A)")


def draw(canvas: Figure, data: Measurement) -> None:
    for i, (axes, (label, part)) in enumerate(
        zip(canvas.subplots(3, 1, sharex=True), data.series("series").items(), strict=True)
    ):
        table = part.table
        axes.plot(table["rollout"], table["value"], color=colour(i))
        axes.fill_between(table["rollout"], table["value_low"], table["value_high"], color=colour(i), alpha=0.15, lw=0)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_title(label, loc="left", fontsize=8.5, pad=2)
    canvas.axes[-1].set(xlabel="rollout")


def measurement(what: str, changes: Mapping[str, Any]) -> Callable[[Effort], Measurement]:
    """Return the function that measures one setting."""

    def measure(effort: Effort) -> Measurement:
        config = Config(**{**size(effort), **changes})
        environment = config.environment()
        found = covariances(config, range(effort.runs), effort.of(SNAPSHOTS, 12))
        values = (found.drop, found.policy_gradient.mean(-1), found.natural.mean(-1))
        rows = [
            {"series": label, "rollout": found.rollout, **band("value", value.T)}
            for label, value in zip(LABELS, values, strict=True)
        ]

        def agreement(drop: Array, *covariances: Array) -> dict[str, float]:
            numbers = {}
            for name, value in zip(("policy_gradient", "natural"), covariances, strict=True):
                each = [spearman(*pair) for pair in zip(drop, value, strict=True)]
                numbers[f"{name}/spearman_of_a_run"] = float(np.mean(each))
                numbers[f"{name}/spearman_of_means"] = spearman(drop.mean(0), value.mean(0))
            predicted = environment.lr * environment.passes * covariances[0].sum()
            return {**numbers, "measured_over_predicted": float(drop.sum() / predicted)}

        numbers = jackknife(agreement, *(value.T for value in values))
        pg, natural = numbers["policy_gradient/spearman_of_a_run"], numbers["natural/spearman_of_a_run"]
        return Measurement(
            stack(rows),
            numbers,
            "In the paper, both covariances correlate weakly with −ΔH. Here Spearman's ρ within a run is "
            f"{pg:.2f} for Cov(log π, π·A) and {natural:.2f} for Cov(log π, A), between means over runs "
            f"{numbers['policy_gradient/spearman_of_means']:.2f} and {numbers['natural/spearman_of_means']:.2f}. "
            f"Entropy falls {numbers['measured_over_predicted']:.2f} times as far as ηM·Cov(log π, π·A) predicts.",
        )

    return measure


for _number, (_what, _changes) in SETTINGS.items():
    figure(
        f"revisiting-{_number}",
        source=f"Revisiting Entropy, figure {_number}",
        shows=f"entropy change and the covariances that should predict it: {_what}",
        changes_if="the correlations within a run were within two standard errors of zero, as the paper's weak ones",
        draw=draw,
    )(measurement(_what, _changes))
