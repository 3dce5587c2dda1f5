"""The page docs/plan.md, made from the code: `python -m llmtrain.plan.plan_page > docs/plan.md`."""

import io
import textwrap
from dataclasses import replace

from rich.console import Console

from . import efficiency
from .cost import make_plan
from .gpu import GIB, GPUS, TRAIN_SOURCES
from .plan_presets import PRESETS, RECIPES, get_preset
from .plan_report import show
from .published import LENGTH_SHARES, PUBLISHED, estimate

SHOWN = "qwen3-8b-64gpu"
"""The preset that the page prints whole."""


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            INTRODUCTION,
            "## The 64-GPU plan\n",
            f"`llmtrain plan --preset {SHOWN}`:\n\n```\n{printed(SHOWN)}```\n",
            "## All presets\n",
            presets(),
            "## Beside what published runs took\n",
            published(),
            MODEL,
            gpus(),
            constants(),
            LEFT_OUT,
        ]
    )


def printed(name: str) -> str:
    """What `llmtrain plan --preset name` prints."""
    out = io.StringIO()
    preset = get_preset(name)
    show(make_plan(preset.config), Console(file=out, width=120, no_color=True, force_terminal=False), preset)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def presets() -> str:
    """A line for each preset, and where the values come from."""
    lines = [
        "| preset | GPU | step, s | rollout, s | training, s | GPU-hours | training, GiB | KV cache, tokens |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, preset in PRESETS.items():
        plan = make_plan(preset.config)
        times = " | ".join(f"{x:,.0f}" for x in (plan.seconds, *list(plan.phases.values())[:2], plan.gpu_hours))
        memory = f"{sum(plan.memory.training.values()) / GIB:.0f} | {plan.memory.kv_tokens:,}"
        lines.append(f"| `{name}` | {preset.config.gpu} | {times} | {memory} |")
    sources = [wrap(f"- `{name}-…`: {recipe.source}.") for name, recipe in RECIPES.items()]
    return "\n".join([*lines, "", *sources, ""])


def published() -> str:
    """The check: estimate over fact, for several mean lengths."""
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
            "Estimated GPU-hours and, in bold, estimate / fact. No constant was fitted to these runs.\n",
            *lines,
            "",
            *(wrap(f"- `{run.preset}`: {run.source}.") for run in PUBLISHED),
            "",
            wrap(
                f"With the mean response that presets assume, a quarter of the limit, the 8B run is estimated at "
                f"{assumed.gpu_hours:,.0f} GPU-hours: **{assumed.gpu_hours / run.gpu_hours:.2f}** of the fact. A step "
                f"took {fact:,.0f} s and is estimated at {assumed.seconds:,.0f} s. {GAP}"
            ),
            "",
        ]
    )


def gpus() -> str:
    """The GPUs' numbers."""
    lines = ["| GPU | bf16 TFLOP/s | memory, GiB | TB/s | NVLink, GB/s | network, GB/s | share of FLOP/s in training |"]
    lines.append("|---|" + "--:|" * 6)
    for gpu in GPUS.values():
        lines.append(
            f"| {gpu.name} | {gpu.flops / 1e12:g} | {gpu.memory / GIB:.1f} | {gpu.bandwidth / 1e12:g} | "
            f"{gpu.nvlink / 1e9:g} | {gpu.network / 1e9:g} | {gpu.train_utilisation:g} |"
        )
    return "\n".join([*lines, "", f"{TRAIN_SOURCES}\n"])


def constants() -> str:
    """The constants of efficiency.py, whose reasons are told there."""
    found = {name: value for name, value in vars(efficiency).items() if name.isupper() and name != "GIB"}
    values = {k: f"{v / GIB:.3g} GiB" if k.endswith("_BYTES") else f"{v:,g}" for k, v in found.items()}
    lines = ["| constant | value |", "|---|--:|", *(f"| `{name}` | {value} |" for name, value in values.items())]
    return "\n".join(
        ["Constants; the reason for each stands beside it in `llmtrain/plan/efficiency.py`:\n", *lines, ""]
    )


def wrap(text: str) -> str:
    """A paragraph, or a point of a list, in lines of 120 characters."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


INTRODUCTION = """\
# llmtrain plan

What a run needs and costs, before anyone pays for it: no GPU, in seconds.

```
llmtrain plan --list
llmtrain plan --preset qwen3-8b-64gpu
llmtrain plan --preset qwen3-8b-64gpu --gpu h100 --gpus 32 --set mean_response_length=4000
llmtrain plan --model runs/my-model --gpus 8 --json
llmtrain plan --preset qwen3-8b-64gpu --write run.yaml
```

It prints every number that follows from the configuration, memory of a GPU by part in training and in rollout, a step's
time by part, GPU-hours, and the changes of placement that would help. What cannot work ends in one line with the fix:

```
$ llmtrain plan --gpus 48
{divide}
$ llmtrain plan --gpus 1
{fit}
```

`--write run.yaml` writes the trainer's settings for the run that was planned, and what the paper of a preset has. Model
and questions are yours to name: `llmtrain train --config run.yaml --model.path FOLDER --data.train-files FILE`.

Made by `python -m llmtrain.plan.plan_page > docs/plan.md`.
"""

GAP = """\
The estimate is nearer to a floor than to a forecast: it has no validation (every 20 steps on six benchmarks there),
checkpoints, verification, start-up, hangs or restarts, engines and trainer switch places for free, every rank has the
same work, and nobody says how long the responses were. `llmtrain plan` therefore prints, beside its estimate, what it
comes to at the factors of this table's middle column."""

MODEL = """\
## The model

**Lengths.** Responses are exponential, cut at the limit: P(length ≥ t) = exp(−t/θ), θ from the mean. The mean is what
the cost depends on most and is published least; set `mean_response_length` from a first rollout of your own.

**Rollout.** An engine decodes up to `max_num_seqs` responses, as many as its KV cache holds at their mean length, and
takes the next when one ends. A decode step takes the larger of (weights + KV cache of all running responses) /
bandwidth and arithmetic / FLOP/s, then sampling and all-reduces, and never less than the host's scheduling. Prompts are
prefilled once a group. The step ends with the longest response of all engines.

**Training.** For each token 2 FLOP a parameter forward, 4 backward, 2 for recomputation; the fused head 6; attention
2·s²·width a layer forward and 2.5 times that backward; one forward pass more for the log-probabilities of the rollout.
Gradients travel in fp32: ZeRO 0 and 1 exchange them once an update, 2 and 3 in every micro-batch beside the arithmetic;
under 3 a rank gets its share alone, under the others DeepSpeed gives all to all. AdamW reads and writes 28 bytes a
parameter.

**Weight sync.** Colocated, or with a `staleness` above 1, through Ray's object store (`topology.weight_sync object`):
from the first rank to its host over PCIe, into the store, to the other nodes over one adapter, out of the store and to
the engines' GPUs, one after the other. Otherwise a broadcast from one rank (`nccl`). Both after an all-gather under
ZeRO 3.

**Memory.** 2 bytes of weights, 4 of gradients, as they are summed in fp32, 12 of optimizer for each parameter, sharded
by the ZeRO stage; 2 more of gradients under ZeRO 0 and 1, for those of a pass;
activations of a micro-batch; a chunk of logits and the head's fp32 gradient; the engine's weights, activations and KV
cache. Colocated, the engine's memory is free during training, and during the rollout what the trainer keeps is not:
under ZeRO 2 weights and optimizer, under the others the sums of gradients as well, which DeepSpeed does not give back.
`tests/llmtrain/policy/test_deepspeed_engine.py` counts these bytes on two ranks.
"""

LEFT_OUT = """\
## What the model leaves out

- Validation, checkpoints, verification of answers, loading of data, start-up, failures.
- Uneven work: ranks and engines have the same tokens; only the longest response of all is waited for. Where lengths are
  the exponential ones, the rank with most tokens of an update has the mean of 64 ranks with 64 responses each
  (`qwen3-8b-64gpu`), and 2% more where they have four each (`qwen2.5-32b-64gpu`); of four each twice the mean, where
  half of the groups have no advantage and are not filtered out ([how they are dealt](scale.md#what-a-rank-does)).
- Further batches of dynamic sampling: the `oversampling` responses of a step are sampled at once
  (`rollout.gen_batch_size`), and taken to be enough.
- Preemption in the engine when responses outgrow the KV cache; chunked prefill beside decoding.
- Sleep and wake of colocated engines, and moving their weights to the host and back.
- Tensor, pipeline, context and expert parallelism in the trainer; LoRA; quantised weights or KV cache; a reward model
  other than PRIME's; speculative decoding.
- Mixture-of-experts, sliding windows and latent attention: `plan` refuses models whose cost it does not know.
- Other tenants of the network. The published clusters' networks are unknown and taken to be NVIDIA's reference.
- Lengths that grow in training: one mean stands for the whole run.
"""


def errors(*changes: dict[str, int]) -> list[str]:
    """The messages that configurations end in."""
    from .plan_config import PlanConfig

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
