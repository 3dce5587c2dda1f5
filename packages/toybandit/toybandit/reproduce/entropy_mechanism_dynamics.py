"""Figures of The Entropy Mechanism on the cause of entropy changes: the covariance of log π and advantage."""

import numpy as np
from matplotlib.figure import Figure

from entrostat.correlation import spearman

from ..config import Config
from ..simulator import simulate
from .curves import size, stack
from .drawing import colour, line_style, lines
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
            "change": values.mean(1),
            "change_low": values.min(1),
            "change_high": values.max(1),
        }
        for name, values in series.items()
    ]
    numbers = {
        "spearman": spearman(found.drop.mean(1), predicted.mean(1)),
        "spearman_of_a_run": float(np.mean([spearman(*pair) for pair in zip(found.drop.T, predicted.T, strict=True)])),
        "measured_over_predicted": float(found.drop.sum() / predicted.sum()),
        "smallest_covariance": float(predicted.mean(1).min()),
    }
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
        axes.bar(where + 0.38 * (i - 0.5), data.table[column], width=0.36, label=column, color=colour(i))
    axes.set_xticks(where, [f"top {top:g}%" for top in data.table["top"]])
    axes.set(ylabel="mean (log π − mean)(A − mean)")
    axes.grid(axis="x", visible=False)
    axes.legend()


@figure(
    "entropy-mechanism-table-1",
    source="Entropy Mechanism, table 1",
    shows="mean covariance of the samples with the largest covariance, at the first update",
    draw=draw_tail,
)
def tail(effort: Effort) -> Measurement:
    config = Config(env="on", states=effort.of(4096), rollouts=1)
    metrics = simulate(config, range(effort.runs), diagnostics=True).metrics
    measured = np.array([metrics[f"covariance/top_{top}%"].mean() for top in PUBLISHED])
    published = np.array(list(PUBLISHED.values()))
    mean = float(metrics["covariance/mean"].mean())
    numbers = {f"top_{top}%": float(value) for top, value in zip(PUBLISHED, measured, strict=True)}
    return Measurement(
        {"top": np.array([float(top) for top in PUBLISHED]), "published": published, "measured": measured},
        numbers | {"mean": mean},
        f"In the paper, the top 0.02% of tokens have {published[0] / published[-1]:.0f} times the covariance of the "
        f"top 20%, and the mean is 0.003. Here a sample is a whole response, not a token: the factor is "
        f"{measured[0] / measured[-1]:.1f} and the mean {mean:.3f}.",
    )


GROUPS = ("hard", "medium", "easy")


def draw_difficulty(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        axes.plot(part.table["rollout"], part.table["covariance"], label=name, **line_style(i))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="Cov(log π, π·A) (nats)")
    axes.legend(title="states by initial accuracy")


@figure(
    "entropy-mechanism-12",
    source="Entropy Mechanism, figure 12",
    shows="covariance of states that are hard, medium and easy for the initial policy",
    draw=draw_difficulty,
)
def difficulty(effort: Effort) -> Measurement:
    config = Config(env="det", passes=1, lr=0.25, **size(effort))
    found = covariances(config, range(effort.runs), effort.of(SNAPSHOTS, 12))
    group = np.digitize(found.accuracy[0], np.quantile(found.accuracy[0], [1 / 3, 2 / 3]))
    means = {name: found.policy_gradient[:, group == i].mean(1) for i, name in enumerate(GROUPS)}
    accuracy = {name: float(found.accuracy[0][group == i].mean()) for i, name in enumerate(GROUPS)}
    rows = [
        {"series": f"{name}, {accuracy[name]:.0%}", "rollout": found.rollout, "covariance": means[name]}
        for name in GROUPS
    ]
    ahead = means["easy"] > means["hard"]
    crossing = float(found.rollout[int(np.argmin(ahead))]) if not ahead.all() else float("inf")
    numbers = {f"{name}_at_first": float(mean[0]) for name, mean in means.items()}
    return Measurement(
        stack(rows),
        {**numbers, "crossing": crossing, **{f"{name}_at_last": float(mean[-1]) for name, mean in means.items()}},
        "In the paper, easier prompts have higher covariance. Here this holds at first (hard "
        f"{numbers['hard_at_first']:.3f}, easy {numbers['easy_at_first']:.3f}), but the order is reversed from "
        f"rollout {crossing:.0f} on: the covariance of easy states falls first.",
    )
