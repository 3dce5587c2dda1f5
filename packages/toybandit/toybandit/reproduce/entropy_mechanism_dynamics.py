"""Figures of The Entropy Mechanism on the cause of entropy changes: the covariance of log π and advantage."""

import numpy as np
from matplotlib.figure import Figure

from entrostat.numbers.correlation import spearman

from ..config import Config
from ..simulator import simulate
from ..trajectory import Array
from ..uncertainty import FACTOR, band, errors, jackknife, mean
from .curves import size, stack
from .drawing import colour, lines
from .registry import Effort, Measurement, figure
from .snapshots import covariances

SNAPSHOTS = 40
"""Number of rollouts of a run at which the policy is examined."""


def draw_dynamics(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    lines(axes, data, "rollout", "change")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="per rollout (nats)")
    axes.legend()


@figure(
    "entropy-mechanism-4",
    source="Entropy Mechanism, figure 4",
    shows="the entropy lost in a rollout, and the prediction of theorem 1, η times a covariance, on-policy",
    changes_if="the covariance became negative, or measured over predicted were two standard errors from 1",
    draw=draw_dynamics,
)
def dynamics(effort: Effort) -> Measurement:
    config = Config(env="on", **size(effort))
    found = covariances(config, range(effort.runs), effort.of(SNAPSHOTS, 12))
    predicted = config.environment().lr * found.policy_gradient.mean(-1)
    series = {"−ΔH, measured": found.drop, "η·Cov(log π, π·A)": predicted}
    rows = [
        {
            "series": name,
            "rollout": found.rollout,
            **band("change", values.T),
        }
        for name, values in series.items()
    ]

    def agreement(drop: Array, predicted: Array) -> dict[str, float]:
        return {
            "spearman": spearman(drop.mean(0), predicted.mean(0)),
            "spearman_of_a_run": float(np.mean([spearman(*pair) for pair in zip(drop, predicted, strict=True)])),
            "measured_over_predicted": float(drop.sum() / predicted.sum()),
            "smallest_covariance": float(predicted.mean(0).min()),
        }

    numbers = jackknife(agreement, found.drop.T, predicted.T)
    return Measurement(
        stack(rows),
        numbers,
        "In the paper, both curves move alike and the covariance stays positive. So they do here, without a free "
        f"factor: measured over predicted is {numbers['measured_over_predicted']:.2f}, Spearman's ρ "
        f"{numbers['spearman']:.2f} between means over runs and {numbers['spearman_of_a_run']:.2f} within a run, "
        "where samples are few.",
    )


PUBLISHED = {"0.02": 5.654, "0.2": 3.112, "2": 1.385, "20": 0.351}
"""Table 1 of the paper: mean covariance of the top percent of the tokens of Qwen2.5-7B."""


def draw_tail(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    where = np.arange(len(data.table["top"]))
    for i, column in enumerate(("published", "measured")):
        whisker = FACTOR * data.table["error"] if column == "measured" else None
        axes.bar(
            where + 0.38 * (i - 0.5), data.table[column], 0.36, yerr=whisker, label=column, color=colour(i), capsize=3
        )
    axes.set_xticks(where, [f"top {top:g}%" for top in data.table["top"]])
    axes.set(ylabel="mean (log π − mean)(A − mean)")
    axes.grid(axis="x", visible=False)
    axes.legend()


@figure(
    "entropy-mechanism-table-1",
    source="Entropy Mechanism, table 1",
    shows="mean covariance of the samples with the largest covariance, at the first update",
    changes_if="the factor were as large as the paper's",
    draw=draw_tail,
)
def tail(effort: Effort) -> Measurement:
    config = Config(env="on", states=effort.of(4096), rollouts=1)
    metrics = simulate(config, range(effort.runs), diagnostics=True).metrics
    measured = np.stack([metrics[f"covariance/top_{top}%"].mean(1) for top in PUBLISHED], -1)
    published = np.array(list(PUBLISHED.values()))
    numbers = {f"top_{top}%": mean(values) for top, values in zip(PUBLISHED, measured.T, strict=True)}
    numbers |= {"mean": mean(metrics["covariance/mean"].mean(1))}
    numbers |= jackknife(lambda tops: {"factor": tops[:, 0].mean() / tops[:, -1].mean()}, measured)
    top = np.array([float(top) for top in PUBLISHED])
    return Measurement(
        {"top": top, "published": published, "measured": measured.mean(0), "error": errors(measured)},
        numbers,
        f"In the paper, the top 0.02% of tokens have {published[0] / published[-1]:.0f} times the covariance of the "
        f"top 20%, and the mean is 0.003. Here a sample is a whole response, not a token: the factor is "
        f"{numbers['factor']:.1f} and the mean {numbers['mean']:.3f}.",
    )


GROUPS = ("hard", "medium", "easy")


def draw_difficulty(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    lines(axes, data, "rollout", "covariance")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="Cov(log π, π·A) (nats)")
    axes.legend(title="states by initial accuracy")


@figure(
    "entropy-mechanism-12",
    source="Entropy Mechanism, figure 12",
    shows="covariance of states that are hard, medium and easy for the initial policy",
    changes_if="easy states kept the larger covariance to the end",
    draw=draw_difficulty,
)
def difficulty(effort: Effort) -> Measurement:
    config = Config(env="det", passes=1, lr=0.25, **size(effort))
    found = covariances(config, range(effort.runs), effort.of(SNAPSHOTS, 12))
    group = np.digitize(found.accuracy[0], np.quantile(found.accuracy[0], [1 / 3, 2 / 3]))
    means = {name: group_mean(found.policy_gradient, group == i) for i, name in enumerate(GROUPS)}
    accuracy = {name: float(found.accuracy[0][group == i].mean()) for i, name in enumerate(GROUPS)}
    rows = [
        {"series": f"{name}, {accuracy[name]:.0%}", "rollout": found.rollout, **band("covariance", means[name])}
        for name in GROUPS
    ]
    ahead = means["easy"].mean(0) > means["hard"].mean(0)
    crossing = float(found.rollout[int(np.argmin(ahead))]) if not ahead.all() else float("inf")
    numbers: dict[str, float] = {"crossing": crossing}
    for name, values in means.items():
        numbers |= {f"{name}_at_first": mean(values[:, 0]), f"{name}_at_last": mean(values[:, -1])}
    later = (means["hard"] - means["easy"])[:, ~np.logical_and.accumulate(ahead)]
    numbers["hard_over_easy_later"] = mean(later.mean(1)) if later.size else float("nan")
    return Measurement(
        stack(rows),
        numbers,
        "In the paper, easier prompts have higher covariance. Here this holds at first (hard "
        f"{numbers['hard_at_first']:.3f}, easy {numbers['easy_at_first']:.3f}), but the order is reversed from "
        f"rollout {crossing:.0f} on, when hard states are ahead by {numbers['hard_over_easy_later']:.4f} on average: "
        "the covariance of easy states falls first.",
    )


def group_mean(values: Array, inside: Array) -> Array:
    """Return the mean over the states inside a group, (runs, rollouts), of values (rollouts, runs, S)."""
    return np.asarray((values * inside).sum(-1) / inside.sum(-1)).T
