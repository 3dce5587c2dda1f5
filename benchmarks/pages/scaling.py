"""Writes docs/scaling.md: python -m benchmarks.pages.scaling > docs/scaling.md"""

from dataclasses import replace

from benchmarks.pages.plan import wrap

from llmtrain.plan.advice import advise
from llmtrain.plan.cost import RunPlan, make_plan
from llmtrain.plan.fixes import find_fix_on_its_gpus
from llmtrain.plan.plan_config import Change, PlanConfig, in_words
from llmtrain.plan.plan_presets import place
from llmtrain.plan.published import PUBLISHED, estimate, ratio
from llmtrain.recipes.recipe import get_recipe, names

GPUS = (8, 64, 512, 4096)
RUNS = ("entropic/qwen3-8b", "entropy_mechanism/qwen2.5-32b-kl-cov")
"""Recipes with published settings, of two sizes of model."""
GPU = "h100"
GROWN = "entropic/qwen3-8b"
"""Recipe whose batch grows with the GPUs in the second table."""
PROMPTS_PER_GPU = 8
"""Its prompts per GPU on the 64 GPUs that it was published for."""
STEPS_OLD: Change = {"colocated": False, "staleness": 1}


def tuned(config: PlanConfig) -> tuple[RunPlan, Change]:
    """Return the plan after every change of placement that `llmtrain plan` advises in turn, and these changes.

    Only changes without a note are taken: they do not affect what is learnt.
    """
    plan, taken = make_plan(config), Change()
    while found := [one for one in advise(plan) if not one.note]:
        plan, taken = found[0].plan, taken | found[0].change
    return plan, taken


def apart(config: PlanConfig) -> Change:
    """Return a placement with no more trainer ranks than responses in a mini-batch, and engines on the other GPUs."""
    ranks = min(config.mini_batch_size * config.n, config.gpus // 2)
    return {"colocated": False, "rollout_gpus": config.gpus - ranks}


def planned(config: PlanConfig) -> tuple[RunPlan | None, Change, str]:
    """Return plan and changes for a configuration, on separate GPUs if it is refused; and why it was refused."""
    try:
        return *tuned(config), ""
    except ValueError as error:
        refused = str(error)
    change = apart(config)
    change |= find_fix_on_its_gpus(replace(config, **change))
    try:
        plan, taken = tuned(replace(config, **change))
    except ValueError:
        return None, {}, refused
    return plan, change | taken, refused


def largest(plan: RunPlan) -> tuple[str, float]:
    """Return the part of the step that takes longest, and its share of the step."""
    parts = {**plan.rollout.seconds, **plan.training, "weight sync": plan.sync}
    part = max(parts, key=lambda name: parts[name])
    return part, parts[part] / plan.seconds


def asynchronous(config: PlanConfig) -> float | None:
    """Return the GPU-hours of the best division into trainer and engines, with rollouts a step old.

    Divisions in eighths are tried, and the configuration's own; None if none works.
    """
    found = []
    own = [config.rollout_gpus] if config.rollout_gpus else []
    for rollout_gpus in [*own, *(config.gpus * eighths // 8 for eighths in range(1, 8))]:
        try:
            change = STEPS_OLD | {"rollout_gpus": rollout_gpus}
            found.append(tuned(replace(config, **change))[0].gpu_hours)
        except ValueError:
            continue
    return min(found, default=None)


def run_table(name: str) -> tuple[str, dict[int, RunPlan], dict[int, str]]:
    """Return the section of a recipe by number of GPUs, its plans, and messages for what was refused."""
    base = place(get_recipe(name), GPUS[0], GPU).config
    lines = [
        f"### {base.model}: recipe `{name}`\n",
        wrap(
            f"{base.prompts:,} prompts × {base.n} responses a step, {base.mini_batch_size * base.n:,} responses an "
            f"update, at most {base.max_response_length:,} tokens, {base.steps:,} steps.\n"
        ),
        "",
        "| GPUs | step, s | rollout | training | sync | largest part | GPU-hours | × 8 GPUs | rollouts a step old |",
        "|--:|--:|--:|--:|--:|---|--:|--:|--:|",
    ]
    plans: dict[int, RunPlan] = {}
    refused: dict[int, str] = {}
    commands = []
    for gpus in GPUS:
        placed = place(get_recipe(name), gpus, GPU).config
        plan, changes, why = planned(placed)
        if why:
            refused[gpus] = why
        if plan is None:
            lines.append(f"| {gpus:,} | refused | | | | | | | |")
            continue
        plans[gpus] = plan
        shares = " | ".join(f"{seconds / plan.seconds:.0%}" for seconds in plan.phases.values())
        part, share = largest(plan)
        old = asynchronous(plan.config)
        lines.append(
            f"| {gpus:,} | {plan.seconds:,.0f} | {shares} | {part}, {share:.0%} | {plan.gpu_hours:,.0f} | "
            f"{plan.gpu_hours / plans[GPUS[0]].gpu_hours:.2f} | {'–' if old is None else f'{old:,.0f}'} |"
        )
        settings = f" --set {in_words(changes)}" if changes else ""
        commands.append(f"llmtrain plan --recipe {name} --gpus {gpus} --gpu {GPU}{settings}")
    return "\n".join([*lines, "", "```", *commands, "```", ""]), plans, refused


def grown_table() -> tuple[str, dict[int, RunPlan]]:
    """Return the table of a batch that grows with the GPUs, and its plans."""
    lines = [
        "| GPUs | responses a step | step, s | rollout | training | sync | largest part | response tokens/s and GPU |",
        "|--:|--:|--:|--:|--:|--:|---|--:|",
    ]
    plans = {}
    for gpus in GPUS:
        prompts = PROMPTS_PER_GPU * gpus
        own = replace(place(get_recipe(GROWN), gpus, GPU).config, prompts=prompts, mini_batch_size=prompts)
        plan, _ = tuned(own)
        plans[gpus] = plan
        shares = " | ".join(f"{seconds / plan.seconds:.0%}" for seconds in plan.phases.values())
        part, share = largest(plan)
        lines.append(
            f"| {gpus:,} | {plan.layout.sequences:,} | {plan.seconds:,.0f} | {shares} | {part}, {share:.0%} | "
            f"{plan.tokens_per_second / gpus:,.0f} |"
        )
    return "\n".join(lines), plans


def largest_update() -> int:
    """Return the most responses of an optimizer step of any recipe."""
    return max(r.value("optim.mini_batch_size", 0) * r.value("rollout.n", 0) for r in map(get_recipe, names()))


def breaks(plans: dict[int, RunPlan], refused: dict[int, str]) -> list[str]:
    """Return sentences about a run: what its smallest placement needs, and where it stops paying and working."""
    first = plans[GPUS[0]]
    model, config = first.layout.model.name, first.config
    found = []
    if config.offload_optimizer or config.offload_param:
        what = "optimizer and weights" if config.offload_param else "optimizer"
        found.append(f"**{model}, {GPUS[0]} GPUs: memory.** It fits with the {what} in the host's memory.")
    dear = [gpus for gpus, plan in plans.items() if plan.gpu_hours > 2 * first.gpu_hours]
    if dear:
        plan = plans[dear[0]]
        part, share = largest(plan)
        found.append(
            f"**{model}, {dear[0]:,} GPUs: the batch.** {plan.layout.sequences_per_engine:,} responses are left for an "
            f"engine of {plan.config.tensor_model_parallel_size} GPUs, and {share:.0%} of the step is {part!r}. The "
            f"run has {first.seconds / plan.seconds:.1f} times the speed of {GPUS[0]} GPUs, for "
            f"{plan.gpu_hours / first.gpu_hours:.1f} times the GPU-hours."
        )
    found += [f"**{model}, {gpus:,} GPUs: refused if colocated.** {message}." for gpus, message in refused.items()]
    return found


def page() -> str:
    """Return the text of the page."""
    tables, sentences = [], []
    for name in RUNS:
        table, plans, refused = run_table(name)
        tables.append(table)
        sentences += breaks(plans, refused)
    grown, grown_plans = grown_table()
    small, large = grown_plans[GPUS[0]], grown_plans[GPUS[-1]]
    keeps = (large.tokens_per_second / GPUS[-1]) / (small.tokens_per_second / GPUS[0])
    checked = [
        wrap(
            f"- `{run.preset}`: {run.source}; estimated at {estimate(run, 1 / 4).gpu_hours:,.0f}, "
            f"**{ratio(run):.2f}** of it."
        )
        for run in PUBLISHED
    ]
    low, high = sorted(1 / ratio(run) for run in PUBLISHED)
    return "\n".join(
        [
            INTRODUCTION,
            "## The same run on more GPUs\n",
            TABLES,
            *tables,
            "## What breaks first\n",
            *(wrap(f"- {sentence}") for sentence in sentences),
            "",
            "## A batch that grows with the GPUs\n",
            wrap(
                f"The 8B run with {PROMPTS_PER_GPU} prompts for each GPU, as on the 64 GPUs that it was published for, "
                "and one update a step:"
            ),
            "",
            grown,
            "",
            wrap(
                f"A GPU keeps {keeps:.0%} of its speed from {GPUS[0]} to {GPUS[-1]:,} GPUs, in a model whose network "
                "is as fast between all nodes as between two. The limit is learning, not speed: the largest update of "
                f"the [recipes](recipes.md) has {largest_update():,} responses, and this one has "
                f"{large.layout.sequences:,}."
            ),
            "",
            "## Checked against published costs\n",
            *checked,
            "",
            wrap(
                f"So budget {low:.1f} to {high:.1f} times the GPU-hours above; [the comparison](plan.md) says why, and "
                "for which response lengths. Both published runs had 64 GPUs. The rows of 8 GPUs have less "
                "communication. Nothing published checks those of 512 and 4,096 GPUs. There the placement of nodes in "
                "the network, stragglers and failures weigh most, and they are not modelled."
            ),
            "",
            HANDOVER.replace("{rows}", "\n".join(f"| {' | '.join(row)} |" for row in TRAINERS)),
        ]
    )


INTRODUCTION = """\
# Scaling on paper

This page estimates where the time of a run goes on 8, 64, 512 and 4,096 GPUs, what breaks first, and when to hand the
run to another trainer. All numbers come from [`llmtrain plan`](plan.md); that page has its model and constants. **No
row has been run.**

Generated by `python -m benchmarks.pages.scaling > docs/scaling.md`.
"""

TABLES = """\
The GPUs are H100s, eight to a node. Learning settings are the recipe's and do not change with the number of GPUs. Each
row has the placement that `llmtrain plan` advises; its command is below the table. Percentages are shares of the step.
"× 8 GPUs" is the GPU-hours relative to 8 GPUs; it would be 1 if scaling cost nothing.

The last column has the GPU-hours if trainer and engines share out the GPUs in the best way and work at the same time,
on rollouts a step old (`colocated=false staleness=1`). This changes what is learnt.
"""

TRAINERS = (
    (
        "verl (FSDP or Megatron, vLLM or SGLang)",
        "[the drop-in](verl.md): one variable and three settings",
        "all controllers that it can feed, exactly; those that compare tokens cost a forward pass for each optimizer "
        "step of several micro-batches. Megatron gives no moments: `thermostat` and exact estimators need FSDP",
    ),
    (
        "prime-rl (FSDP2, asynchronous, vLLM)",
        "[the custom loss](prime_rl.md): two settings",
        "controllers of log-probabilities and advantages that look at tokens or whole responses one by one, such as "
        "`clip_higher`, `cispo`, `opsm`; bonuses, closed loops and schedules are refused by name",
    ),
    (
        "TRL (Accelerate: DDP, FSDP, DeepSpeed)",
        "[the drop-in](trl.md): one class",
        "all controllers that it runs, over all processes; four that need logits TRL does not give are refused",
    ),
)
"""Other trainers, what is there for them, and what they keep of a controller."""

HANDOVER = """\
## Where to hand over

Our trainer divides work only over ranks (ZeRO) and engines (tensor parallel). Hand a run over when

- **the model is not dense, or one layer's work must be divided**: mixture of experts, tensor, pipeline or context
  parallelism in training. `llmtrain plan` refuses such a model, or its advice ends in offloading everything;
- **one sequence does not fit a GPU in training** ([how long it may be](plan.md#how-long-a-sequence-may-be)): context
  parallelism;
- **the GPU-hours of the table double**, and neither rollouts a step old nor
  [partial rollouts](scale.md#partial-rollouts) (not in the table) help. The alternative is a smaller cluster or a
  larger batch;
- **machines fail more often than checkpoints are written**. Here a lost learner ends the run, and you
  [resume it](reliability.md) from its last checkpoint.

| to | with | what stays exact |
|---|---|---|
{rows}

The controller, its target and its metrics keep their names, so runs here and there can be compared in
[the explorer](app.md) and by `llmtrain compare`.
"""


def main() -> None:
    print(page(), end="")


if __name__ == "__main__":
    main()
