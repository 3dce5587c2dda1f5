"""Plan printed as tables, and as a dictionary for JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from .advice import advise
from .cost import RunPlan
from .gpu import GIB
from .headroom import headroom, headroom_in_words
from .plan_presets import Preset
from .published import PUBLISHED, ratio

BAR = 20
"""Characters of a bar for 100% of the time."""


def numbers(plan: RunPlan) -> dict[str, tuple[float, str]]:
    """Return every derived number with its explanation."""
    layout, config = plan.layout, plan.config
    return {
        "parameters": (layout.model.params, layout.model.name),
        "nodes": (layout.nodes, f"{config.gpus} GPUs, {config.gpus_per_node} per node"),
        "trainer ranks": (layout.ranks, f"ZeRO {config.zero_stage}, one per GPU"),
        "rollout engines": (layout.engines, f"tensor parallel over {config.tensor_model_parallel_size}"),
        "global batch": (layout.sequences, f"responses per rollout step: {config.prompts} prompts × {config.n}"),
        "optimizer steps": (layout.updates, "per rollout step"),
        "mini-batch": (
            layout.sequences_per_update,
            f"responses per optimizer step, {layout.sequences_per_rank} per rank",
        ),
        "gradient accumulation": (layout.micro_batches, "micro-batches per optimizer step and rank"),
        "micro-batch": (
            layout.micro_batch_tokens,
            f"tokens at most; a sequence has {layout.mean_sequence:,} on average",
        ),
        "tokens a step": (layout.tokens, "in trained prompts and responses"),
        "responses an engine": (layout.sequences_per_engine, "per rollout step"),
        "decoded at once": (plan.rollout.concurrent, f"at most; {plan.rollout.mean_running:.0f} on average over time"),
        "KV cache": (plan.memory.kv_tokens, f"tokens per engine; the longest sequence has {layout.longest_sequence:,}"),
        "cut responses": (
            round(100 * layout.lengths.cut_share, 1),
            f"% of all reach the limit of {config.max_response_length:,} tokens",
        ),
    }


def to_json(plan: RunPlan) -> dict[str, Any]:
    """Return the plan as JSON values. Memory in bytes, times in seconds."""
    memory = plan.memory
    return {
        "config": asdict(plan.config),
        "numbers": {name: value for name, (value, _) in numbers(plan).items()},
        "memory": {
            "training": memory.training,
            "rollout": memory.rollout,
            "gpu": plan.layout.gpu.memory,
            "free": headroom(plan),
            "host": memory.host,
            "host_loading": memory.loading,
            "gpu_memory_utilization": memory.utilization,
        },
        "seconds": {
            "rollout": plan.rollout.seconds,
            "training": plan.training,
            "weight sync": plan.sync,
            "step": plan.seconds,
        },
        "run": {
            "gpu_hours": plan.gpu_hours,
            "hours": plan.gpu_hours / plan.config.gpus,
            "tokens_per_second": plan.tokens_per_second,
            "tokens_per_second_gpu": plan.tokens_per_second / plan.config.gpus,
            "decode_tokens_per_second_gpu": plan.decode_tokens_per_second,
            "mfu_training": plan.train_utilisation,
            "idle_share": plan.idle_share,
        },
        "advice": [
            {"set": a.change, "seconds": a.plan.seconds, "gpu_hours": a.plan.gpu_hours, "note": a.note}
            for a in advise(plan)
        ],
    }


def show(plan: RunPlan, console: Console, preset: Preset | None = None) -> None:
    """Print the plan."""
    config = plan.config
    title = f"{plan.layout.model.name} on {config.gpus} {plan.layout.gpu.name.upper()}, {config.steps:,} rollout steps"
    console.print(f"[bold]{title}[/bold]")
    if preset:
        console.print(f"Values of: {preset.source}.", highlight=False)
        settings = ", ".join(f"{key} {value}" for key, value in preset.trainer.items())
        console.print(f"Published settings of the trainer: {settings}.", highlight=False)
    console.print(_numbers(plan), _memory(plan), _time(plan))
    console.print(Group(*summary(plan)), highlight=False)
    console.print(_advice(plan), highlight=False)


def _numbers(plan: RunPlan) -> Table:
    table = _table("Numbers", "", "", "")
    for name, (value, why) in numbers(plan).items():
        table.add_row(name, f"{value:,}", why)
    return table


def _memory(plan: RunPlan) -> Table:
    memory, whole = plan.memory, plan.layout.gpu.memory
    where = "" if plan.config.colocated else " GPU"
    table = _table("Memory of a GPU, GiB", "", f"training{where}", f"rollout{where}")
    for part in dict.fromkeys([*memory.training, *memory.rollout]):
        table.add_row(part, *(_gib(parts.get(part, 0.0)) for parts in (memory.training, memory.rollout)))
    table.add_section()
    table.add_row("total", *(_gib(sum(parts.values())) for parts in (memory.training, memory.rollout)))
    table.add_row(f"{plan.layout.gpu.name.upper()} has", _gib(whole), _gib(whole))
    table.add_row("free", *(f"{size / GIB:.1f}" for size in headroom(plan).values()))
    return table


def _gib(size: float) -> str:
    return f"{size / GIB:.1f}" if size else ""


def _time(plan: RunPlan) -> Table:
    table = _table("A rollout step, seconds", "", "", "share", "")
    work = sum(plan.phases.values())
    phases: dict[str, dict[str, float]] = {
        "rollout": plan.rollout.seconds,
        "training": plan.training,
        "weight sync": {},
    }
    for phase, parts in phases.items():
        total = plan.phases[phase]
        table.add_row(f"[bold]{phase}[/bold]", f"[bold]{_s(total)}[/bold]", f"{total / work:.0%}", _bar(total / work))
        for part, seconds in sorted(parts.items(), key=lambda item: -item[1]):
            if seconds >= 0.001 * work:
                table.add_row(f"  {part}", _s(seconds), f"{seconds / work:.0%}", _bar(seconds / work))
    table.add_section()
    overlap = "rollout and training overlap" if plan.overlapped else "one after the other"
    table.add_row("[bold]step[/bold]", f"[bold]{_s(plan.seconds)}[/bold]", "", overlap)
    return table


def _s(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2f}"


def _bar(share: float) -> str:
    return "█" * round(BAR * share)


def summary(plan: RunPlan) -> Iterator[str]:
    """Yield the results as sentences."""
    config = plan.config
    yield (
        f"{plan.tokens_per_second:,.0f} response tokens/s, {plan.tokens_per_second / config.gpus:,.0f} per GPU "
        f"({plan.decode_tokens_per_second:,.0f} while decoding); training at {plan.train_utilisation:.0%} MFU."
    )
    days = plan.gpu_hours / config.gpus / 24
    yield f"{config.steps:,} steps: {plan.gpu_hours:,.0f} GPU-hours, {days:,.1f} days."
    low, high = (f(1 / ratio(run) for run in PUBLISHED) for f in (min, max))
    yield (
        f"Published runs took {low:.1f} to {high:.1f} times their estimate (docs/plan.md): budget "
        f"{plan.gpu_hours * low:,.0f} to {plan.gpu_hours * high:,.0f} GPU-hours."
    )
    held = f", and {plan.memory.host / GIB:,.0f} GiB for offloaded state" if plan.memory.host else ""
    yield headroom_in_words(plan)
    yield f"Host memory per node: {plan.memory.loading / GIB:,.0f} GiB while its ranks load the bf16 model{held}."
    if plan.idle_share > 0:
        yield f"{plan.idle_share:.0%} of the GPU time is idle, waiting for engines or trainer."
    parts = {**plan.rollout.seconds, **plan.training, "weight sync": plan.sync}
    most = max(parts, key=lambda part: parts[part])
    yield f"The largest part is {most}, {parts[most] / sum(parts.values()):.0%} of the work."


def _advice(plan: RunPlan) -> Table | str:
    found = advise(plan)
    if not found:
        return "No change of placement known to plan saves 2% or more."
    table = _table("What to change", "--set", "step, s", "GPU-hours", "but")
    for advice in found:
        table.add_row(advice.words, _s(advice.plan.seconds), f"{advice.plan.gpu_hours:,.0f}", advice.note)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", show_header=any(columns), box=None, pad_edge=False)
    for i, column in enumerate(columns):
        words = i == 0 or column == "but" or (not column and i == len(columns) - 1)
        table.add_column(column, justify="left" if words else "right", no_wrap=i == 0)
    return table
