"""EntroPIC, figures 10 and 13 and table 5: control that starts late, its coefficient, and the choice of the target."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from entrostat.controller import StepStats
from entrostat.controllers.entropic import Entropic
from entrostat.numbers.correlation import pearson

from ..instruments import at_hand
from ..trajectory import Array, Trajectory, last_third
from ..uncertainty import band, highest, jackknife, mean
from .curves import curves, stack, sweep, train
from .drawing import entropy_and_reward, line_style, lines, whiskers
from .entropic import LONG, TARGET, controlled, error_at_end
from .registry import Effort, Measurement, figure

STARTS = (0.1, 0.3, 0.6)
"""Shares of the run before control begins."""
TARGETS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
SAMPLES = 8
"""N of pass@N."""


@dataclass(kw_only=True)
class LateEntropic(Entropic):
    """EntroPIC that starts at a given rollout."""

    start: int = 0
    """Rollout at which control begins."""

    def observe(self, stats: StepStats) -> None:
        if (stats.step or 0) >= self.start:
            super().observe(stats)


def plugged_in(effort: Effort, env: str, start: int) -> Trajectory:
    """Train with GRPO up to `start`, then with PI control at TARGET."""
    with at_hand(late_entropic=LateEntropic):
        args = {"kp": 1.0, "ki": 0.05, "tau": 0.5, "start": start}
        rollouts = effort.of(LONG, 120)
        return train(
            effort, env=env, controller="late_entropic", target=TARGET, controller_args=args, rollouts=rollouts
        )


def draw_late(canvas: Figure, data: Measurement) -> None:
    entropy_and_reward(canvas, data)
    left = canvas.axes[0]
    left.axhline(TARGET, color="black", linewidth=0.8, linestyle=":")


@figure(
    "entropic-10",
    source="EntroPIC, figure 10",
    shows="control (dotted: its target) that starts before and after the entropy has collapsed",
    changes_if="a late start missed the target off-policy, raised the reward by two standard errors, or held "
    "the target with 0/1 rewards",
    draw=draw_late,
)
def plug_in_late(effort: Effort) -> Measurement:
    numbers: dict[str, float] = {}
    shown: dict[str, Trajectory] = {}
    for env in ("noisy", "on", "det"):
        plain = train(effort, env=env, rollouts=effort.of(LONG, 120))
        runs = {"GRPO": plain}
        for share in STARTS:
            start = round(share * plain.reward.shape[1])
            run = plugged_in(effort, env, start)
            name = f"from rollout {start}"
            runs[name] = run
            numbers[f"entropy at the start, {share:g}, {env}"] = mean(run.entropy[:, start])
            numbers[f"error, {share:g}, {env}"] = error_at_end(run)
            numbers[f"reward against GRPO, {share:g}, {env}"] = mean((run.reward - plain.reward)[:, -1])
        if env == "noisy":
            shown = runs
    off, on, det = (
        ", ".join(f"{numbers[f'error, {share:g}, {env}']:+.3f}" for share in STARTS) for env in ("noisy", "on", "det")
    )
    gain = numbers[f"reward against GRPO, {STARTS[-1]:g}, noisy"]
    found = (
        "In the paper, control that starts late brings the entropy back to its target, and scores rise at once. Here "
        f"it also brings it back, from {numbers[f'entropy at the start, {STARTS[-1]:g}, noisy']:.2f} nats at the "
        f"latest start: errors at the end, by start, {off}; on-policy {on}. The reward does not rise ({gain:+.4f} "
        "against GRPO at the latest start). With 0/1 rewards no start helps, since groups of equal rewards have no "
        f"advantage to weight: {det}."
    )
    return Measurement(curves(shown), numbers, found)


def draw_coefficient(canvas: Figure, data: Measurement) -> None:
    left, right = canvas.subplots(1, 2)
    lines(left, data, "rollout", "entropy")
    left.axhline(TARGET, color="black", linewidth=0.8, linestyle=":")
    left.set(xlabel="rollout", ylabel="entropy (nats)")
    lines(right, data, "rollout", "entropic/alpha")
    right.axhline(0, color="black", linewidth=0.8)
    right.set(xlabel="rollout", ylabel="coefficient α")
    canvas.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)


@figure(
    "entropic-13",
    source="EntroPIC, figure 13",
    shows="the coefficient α on-policy, off-policy, from a warmer start and with a late start",
    changes_if="α rose when the entropy fell, or settled within two standard errors of zero",
    draw=draw_coefficient,
)
def coefficient(effort: Effort) -> Measurement:
    rollouts = effort.of(LONG, 120)
    args = {"kp": 1.0, "ki": 0.05, "tau": 0.5}
    warm = train(effort, controller="entropic", target=TARGET, controller_args=args, rollouts=rollouts, logit_std=1.0)
    late = plugged_in(effort, "noisy", round(STARTS[1] * rollouts))
    runs = {
        "on-policy": controlled(effort, "on"),
        "off-policy": controlled(effort, "noisy"),
        "off-policy, logit std 1": warm,
        "off-policy, late": late,
    }
    numbers: dict[str, float] = {}
    for name, run in runs.items():
        alpha = run.metrics["entropic/alpha"]
        numbers[f"α, {name}"] = mean(last_third(alpha).mean(1))
        numbers[f"saturated, {name}"] = float((np.abs(alpha) == 1).mean())
        numbers[f"error, {name}"] = error_at_end(run)
        key = f"correlation with the entropy, {name}"
        numbers |= jackknife(lambda h, a, key=key: {key: pearson(h[a != 0], a[a != 0])}, run.entropy[:, :-1], alpha)
    least = min(numbers[f"correlation with the entropy, {name}"] for name in runs)
    found = (
        "The paper's appendix says that α rises when the entropy falls; its loss needs the opposite, which is the "
        f"result here: α falls with the entropy (correlation at least {least:.2f}). Off-policy it settles at "
        f"{numbers['α, off-policy']:+.2f}, and similarly from a warm ({numbers['α, off-policy, logit std 1']:+.2f}) or "
        f"late ({numbers['α, off-policy, late']:+.2f}) start; on-policy, where it takes longest, at "
        f"{numbers['α, on-policy']:+.2f}. It does not settle at zero, which is why P control has an error."
    )
    return Measurement(curves(runs, "entropic/alpha"), numbers, found)


def right_probability(run: Trajectory) -> Array:
    """Return the probability of a right arm, (runs, S)."""
    right = run.success == run.success.max(-1, keepdims=True)
    return (run.probabilities * right).sum(-1)


def draw_targets(canvas: Figure, data: Measurement) -> None:
    axes = canvas.subplots()
    for i, (name, part) in enumerate(data.series("series").items()):
        table = {key: values.astype(float) for key, values in part.table.items() if key != "series"}
        error = whiskers(table, "score")
        axes.errorbar(table["target"], table["score"], error, marker="o", capsize=2, label=name, **line_style(i))
    axes.set(xlabel="target entropy (nats)", ylabel="right answers")
    axes.legend()


@figure(
    "entropic-table-5",
    source="EntroPIC, table 5",
    shows="avg@N and pass@N at the end of training against the target entropy",
    changes_if="pass@8 fell with the target, or avg@8 were best at the lowest target",
    draw=draw_targets,
)
def targets(effort: Effort) -> Measurement:
    args = {"kp": 1.0, "ki": 0.05, "tau": 0.0}
    runs = sweep(effort, "target", TARGETS, controller="entropic", controller_args=args, rollouts=effort.of(LONG, 120))
    rows: list[Mapping[str, Any]] = []
    numbers: dict[str, float] = {}
    scores: dict[str, dict[str, Array]] = {}
    for target, run in zip(TARGETS, runs.values(), strict=True):
        right = right_probability(run)
        for name, score in ((f"avg@{SAMPLES}", right), (f"pass@{SAMPLES}", 1 - (1 - right) ** SAMPLES)):
            each = score.mean(1)
            scores.setdefault(name, {})[f"{target:g}"] = each
            rows.append({"series": name, "target": target, **band("score", each)})
            numbers[f"{name}, {target:g}"] = mean(each)
        numbers[f"states on wrong arms, {target:g}"] = mean((right < 0.5).mean(1))
        numbers[f"error, {target:g}"] = mean(run.entropy_held - target)
    best, *equals = highest(scores[f"avg@{SAMPLES}"])
    also = f" (not told apart from {', '.join(equals)})" if equals else ""
    low, high = (f"{TARGETS[0]:g}", f"{TARGETS[-1]:g}")
    found = (
        "In the paper, a higher target costs a little avg@N and keeps or improves pass@N. Here a right arm counts as a "
        f"right answer: pass@{SAMPLES} rises with the target from {numbers[f'pass@{SAMPLES}, {low}']:.3f} to "
        f"{numbers[f'pass@{SAMPLES}, {high}']:.3f}, and avg@{SAMPLES} is best at {best} nats{also}: at a target of "
        f"{low}, {numbers[f'states on wrong arms, {low}']:.1%} of the states have settled on wrong arms."
    )
    return Measurement(stack(rows), numbers, found)
