"""STEER, table 7 and figures 12 and 13: estimates of the entropy change of a token against the measured change."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from entrostat.numbers.correlation import pearson, spearman

from ..trajectory import Array
from ..uncertainty import FACTOR, jackknife
from .curves import stack
from .drawing import LOOK, colour, line_style, whiskers
from .registry import Effort, Measurement, figure
from .steer_tokens import MODELS, about, blocks, sample_tokens

LONG = {"exact": "exact flow", "own logit": "own logit", "Ω": "STEER Ω", "OPEFO": "OPEFO", "Cov": "−Cov"}
"""Names of the estimators in pictures."""
SHOWN = ("exact", "Ω", "Cov")
"""Estimators of figures 12 and 13."""
POINTS = 1200
"""Tokens of a scatter plot."""
BINS = 15
MILLI = 1000.0


def quality(estimate: Array, truth: Array, whole: Array) -> dict[str, float]:
    """Return an estimator's errors and correlations for a token's own effect and for its whole group's step."""
    return {
        "mse": float(((estimate - truth) ** 2).mean()),
        "relative_mse": float(((estimate - truth) ** 2).mean() / (truth**2).mean()),
        "pearson": pearson(estimate, truth),
        "spearman": spearman(estimate, truth),
        "pearson_whole": pearson(estimate, whole),
        "spearman_whole": spearman(estimate, whole),
        "wrong_sign": float((estimate * truth < 0).sum() / (truth != 0).sum()),
    }


def draw_quality(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 3, sharey=True)
    shown = (("relative_mse", "MSE / mean square"), ("pearson", "Pearson"), ("spearman", "Spearman"))
    models = data.series("model")
    names = [LONG[name] for name in next(iter(models.values())).table["estimator"].astype(str)]
    where = np.arange(len(names))
    for axes, (column, label) in zip(panels, shown, strict=True):
        for i, (model, part) in enumerate(models.items()):
            offset = 0.26 * (i - 1)
            value, error = part.table[column].astype(float), whiskers(part.table, column)
            axes.barh(where + offset, value, xerr=error, height=0.24, color=colour(i), label=model)
        axes.set(xlabel=label)
        axes.grid(axis="y", visible=False)
    panels[0].set_xscale("log")
    panels[0].axvline(1, color="black", linewidth=0.8, linestyle=":")
    panels[0].set_yticks(where, names)
    panels[0].invert_yaxis()
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(models))


@figure(
    "steer-table-7",
    source="STEER, tables 1 and 7",
    shows="error and correlation of five estimators of a token's entropy change, in three bandits",
    changes_if="Cov ranked tokens as well as Ω, or within two standard errors of zero, in some bandit",
    draw=draw_quality,
)
def estimators(effort: Effort) -> Measurement:
    rows: list[dict[str, Any]] = []
    for model in MODELS:
        sample = sample_tokens(effort, model)
        for name, estimate in sample.estimates.items():
            found = jackknife(quality, *map(blocks, (estimate, sample.own, sample.whole)))
            ends = {
                f"{key}_{end}": value + sign * FACTOR * value.error
                for key, value in found.items()
                for end, sign in (("low", -1), ("high", 1))
            }
            rows.append({"model": model, "estimator": name, **found, **ends})
    numbers = {
        f"{key}, {row['estimator']}, {row['model']}": row[key]
        for row in rows
        for key in ("mse", "relative_mse", "pearson", "spearman", "wrong_sign")
    }
    cov = [numbers[f"spearman, Cov, {model}"] for model in MODELS]
    omega = [numbers[f"spearman, Ω, {model}"] for model in MODELS]
    error = [numbers[f"relative_mse, Ω, {model}"] for model in MODELS]
    text = (
        f"In the paper, Ω ranks tokens well (Spearman .61 to .72) and Cov does not (.04 to .08). Here Ω reaches "
        f"{min(omega):.2f} to {max(omega):.2f}, and Cov {min(cov):.2f} to {max(cov):.2f}: lowest where states differ "
        "in entropy, which is the reason that the paper gives, but never near zero. As a number, Ω is a poor estimate: "
        f"its squared error is {min(error):.0f} to {max(error):.0f} times the error of guessing zero, since it lacks a "
        "factor p. The exact flow has correlation 1.00."
    )
    return Measurement(stack(rows), numbers, text, about(effort))


def binned_means(estimate: Array, truth: Array, edges: Array) -> dict[str, Array]:
    """Return the mean change, the mean estimate and the tokens of each bin of the measured change that has any."""
    where = np.digitize(truth, edges) - 1
    full = [b for b in range(BINS) if (where == b).any()]
    return {
        "bin": np.array(full),
        "measured": np.array([truth[where == b].mean() for b in full]),
        "estimate": np.array([estimate[where == b].mean() for b in full]),
        "tokens": np.array([(where == b).sum() for b in full]),
        "width": np.full(len(full), edges[1] - edges[0]),
    }


def bin_edges(truth: Array) -> Array:
    """Return the edges of the bins: equally wide, without 1% of the tokens at each end."""
    low, high = (float(np.quantile(truth, share)) for share in (0.01, 0.99))
    return np.linspace(low, high, BINS + 1)


def trend(estimate: Array, truth: Array, edges: Array) -> dict[str, float]:
    """Return the mean estimate in each bin, the share of rising steps between bins, and the slope."""
    bins = binned_means(estimate, truth, edges)
    each = dict.fromkeys(map(str, range(BINS)), float("nan")) | dict(
        zip(map(str, bins["bin"]), bins["estimate"], strict=True)
    )
    slope = np.polyfit(bins["measured"], bins["estimate"], 1, w=bins["tokens"] ** 0.5)[0]
    return {**each, "rising": (np.diff(bins["estimate"]) > 0).mean(), "slope": slope}


def draw_binned(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 3)
    for i, (axes, (name, part)) in enumerate(zip(panels, data.series("estimator").items(), strict=True)):
        table = {key: values.astype(float) for key, values in part.table.items() if key != "estimator"}
        counts = axes.twinx()
        counts.bar(table["measured"], table["tokens"], width=0.9 * table["width"], color="#d9d9d9")
        counts.set(yscale="log")
        counts.grid(visible=False)
        axes.set_zorder(counts.get_zorder() + 1)
        axes.patch.set_visible(False)
        error = whiskers(table, "estimate")
        axes.errorbar(table["measured"], table["estimate"], error, marker="o", **line_style(i))
        axes.set(title=LONG[name])
        if i == len(panels) - 1:
            counts.set_ylabel("tokens (grey)")
        else:
            counts.tick_params(which="both", right=False, labelright=False)
    panels[0].set_ylabel("mean estimate of ΔH (mnats)")
    canvas.supxlabel("measured ΔH (mnats)", fontsize=LOOK["font.size"])


@figure(
    "steer-12",
    source="STEER, figure 12",
    shows="mean estimate of a token's entropy change in bins of the measured change",
    changes_if="the mean Cov did not rise with the measured change",
    draw=draw_binned,
)
def estimate_in_bins(effort: Effort) -> Measurement:
    sample = sample_tokens(effort, "mixed")
    edges = bin_edges(MILLI * sample.own)
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for name in SHOWN:
        pair = MILLI * sample.estimates[name], MILLI * sample.own
        bins = binned_means(*pair, edges)
        found = jackknife(partial(trend, edges=edges), *map(blocks, pair))
        error = FACTOR * np.array([found[str(b)].error for b in bins["bin"]])
        ends = {"estimate_low": bins["estimate"] - error, "estimate_high": bins["estimate"] + error}
        rows.append({"estimator": name, **bins, **ends})
        numbers |= {f"rising steps, {name}": found["rising"], f"slope, {name}": found["slope"]}
    text = (
        "The paper's Ω rises with the measured change and Cov shows no relation. Here both rise "
        f"({numbers['rising steps, Ω']:.0%} and {numbers['rising steps, Cov']:.0%} of the steps from bin to bin), with "
        f"slopes of {numbers['slope, Ω']:.1f} and {numbers['slope, Cov']:.1f}, against the exact flow's "
        f"{numbers['slope, exact']:.2f}: only their size is wrong."
    )
    return Measurement(stack(rows), numbers, text, about(effort))


def draw_scatter(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 3, sharex=True)
    for i, (axes, (name, part)) in enumerate(zip(panels, data.series("estimator").items(), strict=True)):
        axes.scatter(part.table["measured"], part.table["estimate"], s=4, color=colour(i), alpha=0.35, linewidth=0)
        low, high = axes.get_xlim()
        axes.plot([low, high], [low, high], color="black", linewidth=0.8, linestyle=":")
        axes.set(title=LONG[name])
    panels[0].set_ylabel("estimate of ΔH (mnats)")
    canvas.supxlabel("measured ΔH (mnats)", fontsize=LOOK["font.size"])


@figure(
    "steer-13",
    source="STEER, figure 13",
    shows="estimate against measured entropy change, one point per token",
    changes_if="Ω had fewer wrong signs than the exact flow, or half wrong",
    draw=draw_scatter,
)
def estimate_scatter(effort: Effort) -> Measurement:
    sample = sample_tokens(effort, "mixed")
    points = slice(None, None, max(sample.own.size // POINTS, 1))
    rows: list[dict[str, Any]] = [
        {"estimator": name, "measured": MILLI * sample.own[points], "estimate": MILLI * sample.estimates[name][points]}
        for name in SHOWN
    ]
    numbers = {
        f"wrong sign, {name}": jackknife(quality, *map(blocks, (sample.estimates[name], sample.own, sample.whole)))[
            "wrong_sign"
        ]
        for name in SHOWN
    }
    found = (
        "The paper's scatter of Ω follows the diagonal, and Cov's is a cloud. Here Ω and Cov both follow it, Ω fans "
        f"out by the missing factor p, and {numbers['wrong sign, Ω']:.1%} of its signs are wrong "
        f"({numbers['wrong sign, Cov']:.1%} of Cov's, {numbers['wrong sign, exact']:.1%} of the exact flow's). "
        "A point is a token, without an interval."
    )
    return Measurement(stack(rows), numbers, found, about(effort))
