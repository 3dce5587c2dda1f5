"""OPEFO, figures 2, 4 and 5 and table 2: the entropy flow of tokens, and training with its two halves balanced."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from entrostat import entropy_change
from entrostat.controller import Context
from entrostat.plan import Plan, importance_ratio

from ..instruments import at_hand, probe
from ..trajectory import Array, Trajectory
from ..uncertainty import band, jackknife, mean, ordered
from .curves import curves, stack, train
from .drawing import colour, entropy_and_reward, lines, named_styles, whiskers
from .registry import Effort, Measurement, figure, out_of_reach

MILLI = 1000.0
TRAINED: dict[str, dict[str, Any]] = {
    "GRPO": {"env": "noisy"},
    "strict on-policy": {"env": "on"},
    "entropy bonus": {"env": "noisy", "controller": "entropy_bonus"},
    "Clip-Higher": {"env": "noisy", "controller": "clip_higher"},
    "OPEFO": {"env": "on", "controller": "opefo"},
    "OPEFO, exact": {"env": "on", "controller": "opefo", "controller_args": {"estimator": "exact"}},
}
"""Configurations of figure 4."""
VARIANTS: dict[str, dict[str, Any]] = {
    "GRPO": {"controller": "grpo"},
    "static": {"controller": "opefo", "controller_args": {"variant": "static"}},
    "S⁺ only": {"controller": "opefo", "controller_args": {"variant": "plus_only"}},
    "S⁻ only": {"controller": "opefo", "controller_args": {"variant": "minus_only"}},
    "OPEFO": {"controller": "opefo"},
    "exact": {"controller": "opefo", "controller_args": {"estimator": "exact"}},
}
"""Rows of table 2, strictly on-policy, and the balance with the exact flow instead of equation 6."""
STEPS = (1.0, 0.1)
"""Step sizes for the comparison of the variants."""
LONG = 300
"""Rollouts of the variants."""
WINDOW = 10
"""Rollouts averaged into a point of figure 2."""
SHRUNK = 10.0
"""Divisor of equation 6 in the picture, so that it fits beside the measured flow."""

out_of_reach("opefo-4c", "response length: a response is one arm here")
out_of_reach("opefo-table-1", "scores on mathematics benchmarks")


def flows(plan: Plan, context: Context) -> Mapping[str, Tensor]:
    """Return an update's mean entropy change for a unit step (nats), from acting tokens and from clipped tokens."""
    tokens = context.tokens
    logp, entropy = tokens.get("logp"), tokens.get("entropy")
    weight = tokens.advantage * importance_ratio(logp, tokens.get("old_logp"))
    stopped = plan.clipped(logp)
    estimates = {
        "exact": entropy_change.exact(logp, entropy, tokens.get("s2"), tokens.get("s2l"), weight),
        "paper": entropy_change.opefo(logp, entropy, tokens.advantage),
    }
    parts = {"net": ~stopped, "upper": stopped & (tokens.advantage > 0), "lower": stopped & (tokens.advantage < 0)}
    return {
        f"{part}/{name}": torch.where(mask, flow, 0.0).mean(-1)
        for name, flow in estimates.items()
        for part, mask in parts.items()
    }


def train_watched(effort: Effort, **changes: Any) -> Trajectory:
    """Train with `flows` in the metrics, in nats per rollout: summed over the passes, times the step size."""
    controller = changes.pop("controller", "grpo")
    with at_hand(probe=probe(flows, "logp", "old_logp", "entropy", "s2", "s2l")):
        run = train(effort, controller=f"{controller}+probe", **changes)
    environment = run.config.environment()
    step = np.reshape(environment.lr, (-1, 1)) * environment.passes
    watched = {name: step * values if "/" in name else values for name, values in run.metrics.items()}
    return replace(run, metrics=watched)


def draw_flow(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 3)
    for axes, (name, part) in zip(panels, data.series("panel").items(), strict=True):
        found = part.series("series")
        for (series, line), style in zip(found.items(), named_styles(list(found)), strict=True):
            rollout, value = line.table["rollout"], line.table["value"].astype(float)
            scale = 1.0 if name == "entropy" else MILLI / SHRUNK if "eq. 6" in series else MILLI
            label = f"{series} ÷ {SHRUNK:g}" if "eq. 6" in series else series
            low, high = (scale * line.table[f"value_{end}"].astype(float) for end in ("low", "high"))
            axes.plot(rollout, scale * value, label=label, **style)
            axes.fill_between(rollout, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set_title(name)
        axes.set_xlabel("rollout")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.1), fontsize=7)
    panels[0].set_ylabel("entropy (nats)")
    panels[1].set_ylabel("10⁻³ nats per rollout")


@figure(
    "opefo-2",
    source="OPEFO, figure 2",
    shows="entropy, net entropy flow, and the flow of the tokens that Clip-Higher stops",
    changes_if="a stopped flow had the other sign, or equation 6 summed to the entropy lost, within two "
    "standard errors",
    draw=draw_flow,
)
def entropy_flow(effort: Effort) -> Measurement:
    runs = {"GRPO": train_watched(effort), "on-policy": train_watched(effort, env="on")}
    higher = train_watched(effort, controller="clip_higher")
    steps = higher.reward.shape[1] // WINDOW * WINDOW
    rollout = np.arange(steps).reshape(-1, WINDOW).mean(1)
    rows: list[dict[str, Any]] = []

    def add(panel: str, series: str, values: Array) -> None:
        windows = values[:, :steps].reshape(len(values), -1, WINDOW).mean(-1)
        rows.append({"panel": panel, "series": series, "rollout": rollout, **band("value", windows)})

    numbers: dict[str, float] = {}
    for name, run in runs.items():
        add("entropy", name, run.entropy)
    for name, run in runs.items():
        totals = {"measured": np.diff(run.entropy).sum(1)}
        add("net flow", f"{name}, measured", np.diff(run.entropy))
        add("net flow", f"{name}, eq. 6", run.metrics["net/paper"])
        totals |= {f"net, {estimate}": run.metrics[f"net/{estimate}"].sum(1) for estimate in ("exact", "paper")}
        numbers |= {f"{quantity}, {name}": mean(values) for quantity, values in totals.items()}
        for estimate in ("exact", "paper"):
            parts = totals[f"net, {estimate}"], totals["measured"]
            numbers |= jackknife(
                lambda net, moved, key=f"{estimate} / measured, {name}": {key: net.sum() / moved.sum()}, *parts
            )
    for bound in ("upper", "lower"):
        for estimate, label in (("exact", "exact"), ("paper", "eq. 6")):
            values = higher.metrics[f"{bound}/{estimate}"]
            add("stopped tokens", f"{bound}, {label}", values)
            numbers[f"{bound}, {estimate}"] = mean(values.sum(1))
            numbers[f"{bound}, {estimate}, rollouts above 0"] = float((values.mean(0) > 0).mean())
    found = (
        "The paper shows a net flow that is strongly negative at first and then vanishes, and Clip-Higher stopping "
        f"tokens that raise the entropy at the upper bound and lower it at the lower. All of this holds here: stopped "
        f"tokens would have moved it by {numbers['upper, exact']:+.1f} and {numbers['lower, exact']:+.1f} nats. But "
        f"equation 6 is not an entropy change: it sums to {numbers['paper / measured, GRPO']:.1f} times the "
        f"entropy that GRPO lost, {numbers['paper / measured, on-policy']:.1f} times on-policy; the exact flow to "
        f"{numbers['exact / measured, GRPO']:.3f} and {numbers['exact / measured, on-policy']:.3f} times."
    )
    return Measurement(stack(rows), numbers, found)


@figure(
    "opefo-4a",
    source="OPEFO, figures 4a and 4b",
    shows="entropy and reward of GRPO, its on-policy variant, an entropy bonus, Clip-Higher and OPEFO",
    changes_if="OPEFO ended within two standard errors of its first entropy, or of GRPO's reward",
    draw=lambda canvas, data: entropy_and_reward(canvas, data, columns=3),
)
def training_dynamics(effort: Effort) -> Measurement:
    runs = {name: train(effort, **changes) for name, changes in TRAINED.items()}
    numbers: dict[str, float] = {}
    for name, run in runs.items():
        numbers[name] = mean(run.entropy_held)
        numbers[f"{name}, start"] = mean(run.entropy[:, 0])
        numbers[f"{name}, reward"] = mean(run.reward[:, -1])
    ends = ", ".join(f"{name} {numbers[name]:.2f}" for name in TRAINED)
    found = (
        "In the paper, GRPO and its on-policy variant collapse, the bonus inflates the entropy, and OPEFO keeps it "
        f"level at a competitive reward. Here the entropy starts at {numbers['GRPO, start']:.2f} nats; over the last "
        f"third it is: {ends}. OPEFO raises the entropy and ends at a reward of {numbers['OPEFO, reward']:.3f}, GRPO "
        f"at {numbers['GRPO, reward']:.3f}; balancing the exact flow slows the fall and ends at "
        f"{numbers['OPEFO, exact, reward']:.3f}. The bonus does not inflate the entropy."
    )
    return Measurement(curves(runs), numbers, found)


def draw_balance(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    lines(axes, data, "rollout", "opefo/lambda")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="rollout", ylabel="balance λ*")
    axes.legend()


@figure(
    "opefo-5",
    source="OPEFO, figure 5",
    shows="the balance λ* over a training run",
    changes_if="λ* were negative at some rollout, or its mean of the paper's size",
    draw=draw_balance,
)
def balance(effort: Effort) -> Measurement:
    runs = {
        "flow of eq. 6": train(effort, **TRAINED["OPEFO"]),
        "exact flow": train(effort, **TRAINED["OPEFO, exact"]),
    }
    numbers: dict[str, float] = {}
    for name, run in runs.items():
        balances = run.metrics["opefo/lambda"]
        third = balances.shape[1] // 3
        numbers |= {
            f"{name}, mean": mean(balances.mean(1)),
            f"{name}, first third": mean(balances[:, :third].mean(1)),
            f"{name}, last third": mean(balances[:, -third:].mean(1)),
            f"{name}, rollouts above 0": float((balances.mean(0) > 0).mean()),
        }
    paper, exact = (f"{numbers[f'{name}, first third']:.2f} to {numbers[f'{name}, last third']:.2f}" for name in runs)
    found = (
        "The paper's λ* is positive throughout, falls and then rises, around a mean of .001. Here it is positive too, "
        f"but far larger, and does not dip: from the first third to the last {paper} with equation 6, which reports "
        f"a loss while entropy is gained, and {exact} with the exact flow."
    )
    return Measurement(curves(runs, "opefo/lambda"), numbers, found)


def draw_variants(canvas: Figure, data: Measurement) -> None:
    panels = canvas.subplots(1, 2, sharey=True)
    for axes, column, label in ((panels[0], "entropy", "final entropy (nats)"), (panels[1], "reward", "final reward")):
        for i, (step, part) in enumerate(data.series("step").items()):
            where = np.arange(part.table["variant"].size) + 0.38 * (i - 0.5)
            value = part.table[column].astype(float)
            axes.barh(
                where, value, xerr=whiskers(part.table, column), height=0.36, color=colour(i), label=step, capsize=2
            )
            axes.set_yticks(np.arange(where.size), part.table["variant"].astype(str))
        axes.set(xlabel=label)
        axes.grid(axis="y", visible=False)
    panels[0].axvline(float(data.table["start"][0]), color="black", linewidth=0.8, linestyle=":")
    panels[0].invert_yaxis()
    panels[1].set_xlim(left=0.4)
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


@figure(
    "opefo-table-2",
    source="OPEFO, table 2",
    shows="entropy (dotted: at the start) and reward at the end of training with variants of the balance",
    changes_if="OPEFO ended within two standard errors of its first entropy, or above GRPO in reward",
    draw=draw_variants,
)
def variants(effort: Effort) -> Measurement:
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    ends: dict[tuple[str, float], dict[str, Array]] = {}
    for step in STEPS:
        for name, changes in VARIANTS.items():
            run = train(effort, env="on", lr=step, rollouts=effort.of(LONG, 100), **changes)
            start = mean(run.entropy[:, 0])
            row: dict[str, Any] = {"step": f"η = {step:g}", "variant": name, "start": float(start)}
            for column, values in (("entropy", run.entropy[:, -1]), ("reward", run.reward[:, -1])):
                row |= {part: numbers_of.item() for part, numbers_of in band(column, values).items()}
                ends.setdefault((column, step), {})[name] = values
                numbers[f"{name}, {column}, η = {step:g}"] = mean(values)
            rows.append(row)
            numbers["start"] = start
    order, best = (ordered(ends[column, STEPS[0]], spec) for column, spec in (("entropy", ".2f"), ("reward", ".3f")))
    found = (
        "The paper's scores rise from GRPO over static and the one-sided variants to OPEFO. Here the entropy rises in "
        f"this order ({order}), and the reward falls ({best}). From {numbers['start']:.2f} "
        f"nats, OPEFO ends at {numbers['OPEFO, entropy, η = 1']:.2f} and {numbers['OPEFO, entropy, η = 0.1']:.2f} "
        f"(η = 1 and 0.1): its flow is not zero. The exact balance ends at {numbers['exact, entropy, η = 1']:.2f} and "
        f"{numbers['exact, entropy, η = 0.1']:.2f}: its flow is zero to first order in the step."
    )
    return Measurement(stack(rows), numbers, found)
