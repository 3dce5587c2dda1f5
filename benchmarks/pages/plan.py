"""Generator of docs/plan.md: `python -m benchmarks.pages.plan > docs/plan.md`."""

import io
import textwrap
from dataclasses import replace

from benchmarks.pages.longest_sequence import longest_sequence
from benchmarks.pages.rollout_schedules_page import tables
from rich.console import Console

from llmtrain.plan import efficiency
from llmtrain.plan.cost import make_plan
from llmtrain.plan.gpu import GIB, GPUS, TRAIN_SOURCES
from llmtrain.plan.plan_presets import NAMES, PRESETS, get_preset
from llmtrain.plan.plan_report import show
from llmtrain.plan.published import LENGTH_SHARES, PUBLISHED, estimate

SHOWN = "qwen3-8b-64gpu"
"""Preset that the page prints in full."""


def page() -> str:
    """Return the text of the page, with placeholders {divide} and {fit}."""
    return "\n".join(
        [
            INTRODUCTION,
            "## The 64-GPU plan\n",
            f"`llmtrain plan --preset {SHOWN}`:\n\n```\n{printed(SHOWN)}```\n",
            "## All presets\n",
            presets(),
            "## Comparison with published runs\n",
            published(),
            SCHEDULES,
            tables(),
            LONG,
            longest(),
            MODEL,
            gpus(),
            constants(),
            LEFT_OUT,
        ]
    )


def printed(name: str) -> str:
    """Return the output of `llmtrain plan --preset name`."""
    out = io.StringIO()
    preset = get_preset(name)
    show(make_plan(preset.config), Console(file=out, width=120, no_color=True, force_terminal=False), preset)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def presets() -> str:
    """Return the table of presets, and the sources of their values."""
    lines = [
        "| preset | GPU | step, s | rollout, s | training, s | GPU-hours | training, GiB | KV cache, tokens |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, preset in PRESETS.items():
        plan = make_plan(preset.config)
        times = " | ".join(f"{x:,.0f}" for x in (plan.seconds, *list(plan.phases.values())[:2], plan.gpu_hours))
        memory = f"{sum(plan.memory.training.values()) / GIB:.0f} | {plan.memory.kv_tokens:,}"
        lines.append(f"| `{name}` | {preset.config.gpu} | {times} | {memory} |")
    sources = [wrap(f"- `{name}-…`: the recipe [{recipe}](recipes.md).") for name, recipe in NAMES.items()]
    return "\n".join([*lines, "", *sources, ""])


def published() -> str:
    """Return the comparison of estimated with published GPU-hours for several mean lengths."""
    head = " | ".join(f"mean = limit / {round(1 / share)}" for share in LENGTH_SHARES)
    lines = [f"| run | published GPU-hours | {head} |", "|---|--:|" + "--:|" * len(LENGTH_SHARES)]
    for run in PUBLISHED:
        plans = [estimate(run, share) for share in LENGTH_SHARES]
        cells = " | ".join(f"{p.gpu_hours:,.0f}, **{p.gpu_hours / run.gpu_hours:.2f}**" for p in plans)
        lines.append(f"| `{run.preset}` | {run.gpu_hours:,.0f} | {cells} |")
    run = PUBLISHED[0]
    steps = get_preset(run.preset).config.steps
    fact = run.gpu_hours * 3600 / steps / get_preset(run.preset).config.gpus
    assumed = estimate(run, 1 / 4)
    return "\n".join(
        [
            "Estimated GPU-hours and, in bold, estimate / published. No constant was fitted to these runs.\n",
            *lines,
            "",
            *(wrap(f"- `{run.preset}`: {run.source}.") for run in PUBLISHED),
            "",
            wrap(
                f"With the mean response that presets assume, a quarter of the limit, the 8B run is estimated at "
                f"{assumed.gpu_hours:,.0f} GPU-hours: **{assumed.gpu_hours / run.gpu_hours:.2f}** of the published "
                f"value. A step took {fact:,.0f} s and is estimated at {assumed.seconds:,.0f} s. {GAP}"
            ),
            "",
        ]
    )


def longest() -> str:
    """Return the table of the longest sequences that fit."""
    lines = ["| preset | GPU | ZeRO 2 | ZeRO 3 |", "|---|---|--:|--:|"]
    for name in LONG_RUNS:
        for gpu in ("h100", "h200"):
            config = replace(get_preset(name).config, gpu=gpu, oversampling=1.0)
            found = [longest_sequence(replace(config, zero_stage=stage)) for stage in (2, 3)]
            lines.append(f"| `{name}` | {gpu} | {' | '.join(f'{n:,}' if n else 'none' for n in found)} |")
    return "\n".join([*lines, ""])


def gpus() -> str:
    """Return the table of GPUs."""
    lines = ["| GPU | bf16 TFLOP/s | memory, GiB | TB/s | NVLink, GB/s | network, GB/s | share of FLOP/s in training |"]
    lines.append("|---|" + "--:|" * 6)
    for gpu in GPUS.values():
        lines.append(
            f"| {gpu.name} | {gpu.flops / 1e12:g} | {gpu.memory / GIB:.1f} | {gpu.bandwidth / 1e12:g} | "
            f"{gpu.nvlink / 1e9:g} | {gpu.network / 1e9:g} | {gpu.train_utilisation:g} |"
        )
    return "\n".join([*lines, "", f"{TRAIN_SOURCES}\n"])


def constants() -> str:
    """Return the table of constants in efficiency.py."""
    found = {name: value for name, value in vars(efficiency).items() if name.isupper() and name != "GIB"}
    values = {k: f"{v / GIB:.3g} GiB" if k.endswith("_BYTES") else f"{v:,g}" for k, v in found.items()}
    lines = ["| constant | value |", "|---|--:|", *(f"| `{name}` | {value} |" for name, value in values.items())]
    return "\n".join(["Constants; `llmtrain/plan/efficiency.py` gives the source of each:\n", *lines, ""])


def wrap(text: str) -> str:
    """Return a paragraph or list item wrapped at 120 characters."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


INTRODUCTION = """\
# llmtrain plan

Estimates memory, time and cost of a run in seconds, without a GPU.

```
llmtrain plan --list
llmtrain plan --preset qwen3-8b-64gpu
llmtrain plan --preset qwen3-8b-64gpu --gpu h100 --gpus 32 --set mean_response_length=4000
llmtrain plan --model runs/my-model --gpus 8 --json
llmtrain plan --preset qwen3-8b-64gpu --write run.yaml
```

It prints every number derived from the configuration, GPU memory by part in training and rollout, the time of a step by
part, GPU-hours, and changes of placement that would help. An impossible configuration ends with a one-line error and
its fix:

```
$ llmtrain plan --gpus 48
{divide}
$ llmtrain plan --gpus 1
{fit}
```

`--write run.yaml` writes the trainer's settings for the planned run, with the published settings of a preset. You add
model and questions: `llmtrain train --config run.yaml --model.path FOLDER --data.train-files FILE`.

Generated by `python -m benchmarks.pages.plan > docs/plan.md`.
"""

GAP = """\
The estimate is closer to a lower bound than to a forecast: it excludes validation (in these runs every 20 steps on six
benchmarks), checkpoints, verification, start-up, hangs and restarts; switching between engines and trainer is free;
every rank has the same work; and the papers do not state the response lengths. `llmtrain plan` therefore also prints
its estimate scaled by the factors in this table's middle column."""

LONG_RUNS = ("qwen2.5-math-7b-8gpu", "qwen3-8b-64gpu", "qwen2.5-32b-64gpu")
"""Presets of the table of longest sequences."""
LONG = """\
## How long a sequence may be

The longest response, in tokens, whose sequence still fits on a GPU of the trainer as a micro-batch of its own, with
gradient checkpointing. Responses of 16,384 to 32,768 tokens fit without splitting them over GPUs, which is why the
trainer has no context parallelism; layout `shared`, with its dense mask, is not for such lengths.
"""

SCHEDULES = """\
## What waiting for the longest response costs

A rollout step waits for its longest response, unless [`rollout.partial_tokens`](scale.md#partial-rollouts) is set.
The table simulates other schedules for the same lengths:

- the longest responses first, as if their lengths were known;
- partial rollouts, in which a response gets a limited number of tokens in a step and goes on under new weights;
- more groups than are trained, of which the first to end are taken.

`tokens/s` are trained response tokens, relative to lockstep. `staleness` is the mean number of steps between the
weights that drew a token and its update. `length` is the mean length of trained responses relative to all. `dropped`
is what is drawn and not trained, relative to what is trained.

![Time of a rollout step by schedule](plan/schedules.png)

*Log-normal lengths. `python -m benchmarks.pages.rollout_schedules_page docs/plan/schedules.png`.*

Partial rollouts gain where an engine decodes all of its responses at once, so that nothing fills the gaps (second
run). With twice as many responses, the next ones fill them (first run). Small pieces lose, since each is prefilled
again. Oversampling gains less or nothing: it throws away a quarter of its tokens or more, and it trains on shorter
responses, which are no random choice. llmtrain therefore does not offer it.

`llmtrain plan --set partial_tokens=2048` plans a run with partial rollouts, and the advice at the end of every plan
lists them where they save time.
"""

MODEL = """\
## The model

**Lengths.** Response lengths are exponential, truncated at the limit: P(length ≥ t) = exp(−t/θ), θ from the mean. The
cost depends most on the mean, which papers rarely publish; set `mean_response_length` from your own first rollout.

**Rollout.** An engine decodes up to `max_num_seqs` responses, or as many as fit into its KV cache at their mean length,
and starts the next one when one ends. The time of a decode step is the larger of (weights + KV cache of all running
responses) / bandwidth and arithmetic / FLOP/s, plus sampling and all-reduces, and at least the host's scheduling time.
Prompts are prefilled once per group. The step ends with the longest response of all engines.

**Training.** For each token, 2 FLOP per parameter forward, 4 backward, 2 for recomputation; 6 for the fused head;
attention takes 2·s²·width per layer forward and 2.5 times that backward; one more forward pass computes the
log-probabilities of the rollout. Gradients are exchanged in fp32: once per update under ZeRO 0 and 1, in every
micro-batch under 2 and 3, and counted as overlapping with arithmetic only under 3. Under 3 a rank receives only its own
shard; under the other stages DeepSpeed sends all gradients to all ranks. AdamW reads and writes 28 bytes per parameter.

**Weight sync.** If colocated, trainer and engine share the memory of each GPU (CUDA IPC): on one node with engines of
one GPU by `topology.name local`, otherwise by `topology.weight_sync ipc`. That takes 16 passes over the weights, of
which 12 are checksums. Otherwise one rank broadcasts them (`nccl`). With a `staleness` above 1 they go through Ray's
object store (`object`) at `store_gb_per_s`, and to the other nodes over one adapter. The default of 1.4 GB/s was
measured on an AMD EPYC without a GPU; [`llmtrain doctor`](install.md) measures that of a machine. Under ZeRO 3 all
need an all-gather first.

**Memory.** Each parameter takes 2 bytes for its weight, 4 for its gradient, which is summed in fp32, and 12 for the
optimizer, sharded according to the ZeRO stage; ZeRO 0 and 1 take 2 more for the gradients of a pass. Added to these are
the activations of a micro-batch, a chunk of logits, the head's fp32 gradient, and the engine's weights, activations and
KV cache. If colocated, the engine's memory is free during training, but the trainer keeps memory during the rollout:
weights and optimizer under ZeRO 2, under the other stages also the gradient sums, which DeepSpeed does not release.
`tests/llmtrain/policy/test_deepspeed_engine.py` counts these bytes on two ranks.
"""

LEFT_OUT = """\
## Not in the model

- Validation, checkpoints, verification of answers, loading of data, start-up, failures.
- Uneven work: all ranks and engines process the same number of tokens; the only wait is for the longest response. With
  exponential lengths, the rank with most tokens in an update has the mean if 64 ranks have 64 responses each
  (`qwen3-8b-64gpu`), and 2% more if they have four each (`qwen2.5-32b-64gpu`). With four each it has twice the mean if
  half of the groups have no advantage and are not filtered out ([distribution over ranks](scale.md#what-a-rank-does)).
- Further batches of dynamic sampling: the `oversampling` responses of a step are sampled at once
  (`rollout.gen_batch_size`) and assumed to be enough.
- Preemption in the engine when responses outgrow the KV cache; chunked prefill during decoding.
- Sleep and wake of colocated engines, and moving their weights to the host and back.
- Tensor, pipeline, context and expert parallelism in the trainer; LoRA; quantised weights or KV cache; a reward model
  other than PRIME's; speculative decoding.
- Mixture-of-experts, sliding windows and latent attention: `plan` refuses models that it cannot estimate.
- Other network traffic. The networks of the published clusters are unknown; NVIDIA's reference network is assumed.
- Growth of response lengths during training: one mean is used for the whole run.
"""


def errors(*changes: dict[str, int]) -> list[str]:
    """Return the error messages of changed configurations."""
    from llmtrain.plan.plan_config import PlanConfig

    found = []
    for change in changes:
        try:
            make_plan(replace(PlanConfig(), **change))  # type: ignore[arg-type]
        except ValueError as error:
            found.append(f"error: {error}")
    return found


def main() -> None:
    text = page()
    divide, fit = errors({"gpus": 48}, {"gpus": 1})
    print(text.replace("{divide}", divide).replace("{fit}", fit), end="")


if __name__ == "__main__":
    main()
