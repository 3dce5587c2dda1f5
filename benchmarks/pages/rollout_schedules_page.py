"""Rollout schedules of two runs, as the tables of docs/plan.md and their picture.

python -m benchmarks.pages.rollout_schedules_page docs/plan/schedules.png
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial as bind
from pathlib import Path

from benchmarks.pages.rollout_schedules import RolloutSchedule, lockstep, oversampled, partial

from entrostat.about.colours import PALETTE
from llmtrain.plan.cost import RunPlan, make_plan
from llmtrain.plan.lengths import Drawn, Lengths, LogNormalLengths
from llmtrain.plan.plan_presets import get_preset

TAIL = 10.0
"""Quantile .99 of the log-normal lengths, divided by their median; an assumption, since papers publish no quantiles."""
MEAN, LIMIT = 2048, 8192
"""Mean and longest response of both runs (tokens)."""
SHOWN = {"qwen2.5-math-7b-8gpu": "h200", "qwen2.5-32b-64gpu": "h100"}
"""Presets of the runs, and the GPUs they are placed on."""


@dataclass(frozen=True)
class Compared:
    """Schedules of a run by name, under one distribution of lengths."""

    title: str
    plan: RunPlan
    schedules: dict[str, RolloutSchedule]


def compare(plan: RunPlan, lengths: Drawn) -> dict[str, RolloutSchedule]:
    """Return the schedules of a plan by name."""
    bound: dict[str, Callable[..., RolloutSchedule]] = {
        "lockstep": lockstep,
        "longest first": bind(lockstep, longest_first=True),
        **{f"partial, {share:,} tokens": bind(partial, budget=share) for share in (LIMIT // 2, LIMIT // 4, LIMIT // 8)},
        **{f"oversampled × {factor:g}": bind(oversampled, factor=factor) for factor in (1.25, 1.5, 2.0)},
    }
    return {name: schedule(plan.layout, plan.memory, lengths) for name, schedule in bound.items()}


def compared() -> Iterator[Compared]:
    """Yield the schedules of both runs under both distributions."""
    for name, gpu in SHOWN.items():
        config = replace(get_preset(name).config, gpu=gpu, mean_response_length=MEAN, max_response_length=LIMIT)
        plan = make_plan(replace(config, max_positions=16384, oversampling=1.0))
        for kind, lengths in (
            ("exponential lengths", Lengths(MEAN, LIMIT)),
            (f"log-normal lengths, quantile .99 at {TAIL:g} medians", LogNormalLengths(MEAN, LIMIT, TAIL)),
        ):
            title = f"{config.model} on {config.gpus} {gpu.upper()}, {config.prompts} × {config.n} responses, {kind}"
            yield Compared(title, plan, compare(plan, lengths))


def tables() -> str:
    """Return the tables of docs/plan.md."""
    lines = list[str]()
    for one in compared():
        first = next(iter(one.schedules.values())).tokens_per_second(one.plan)
        lines += [f"{one.title}:\n", "| schedule | rollout, s | step, s | tokens/s | staleness | length | dropped |"]
        lines.append("|---|" + "--:|" * 6)
        for name, schedule in one.schedules.items():
            rate = schedule.tokens_per_second(one.plan) / first
            lines.append(
                f"| {name} | {schedule.seconds:.0f} | {schedule.step_seconds(one.plan):.0f} | × {rate:.2f} | "
                f"{schedule.staleness:.2f} | {schedule.length:.2f} | {schedule.dropped:.0%} |"
            )
        lines.append("")
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Draw the step times of the log-normal lengths by schedule."""
    from matplotlib.figure import Figure

    shown = [one for one in compared() if "log-normal" in one.title]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, one in zip(figure.subplots(1, len(shown)), shown, strict=True):
        names = list(one.schedules)[::-1]
        rollout = [one.schedules[name].seconds for name in names]
        rest = [one.schedules[name].step_seconds(one.plan) - x for name, x in zip(names, rollout, strict=True)]
        axes.barh(names, rollout, color=PALETTE[0], label="rollout")
        axes.barh(names, rest, left=rollout, color=PALETTE[4], label="training and weight sync")
        axes.set_title(one.title.partition(", ")[0], fontsize=10)
        axes.set_xlabel("rollout step (s)")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
