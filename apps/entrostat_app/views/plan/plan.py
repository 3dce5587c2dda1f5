"""Plan: from GPUs, model, lengths and a budget to hours, money, memory, settings and commands, and to the run."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from entrostat.settings.plain_yaml import dump_yaml
from llmtrain.plan.architecture import MODELS
from llmtrain.plan.gpu import GPUS
from llmtrain.plan.headroom import ENOUGH
from llmtrain.plan.plan_config import PlanConfig, in_words
from llmtrain.plan.plan_report import summary
from llmtrain.plan.published import PUBLISHED, ratio
from llmtrain.recipes.recipe import names

from ...shared import charts, exports, run_folder
from ...shared.controls import Control, Sections
from ...shared.plain_text import plain
from ...shared.room import room
from . import against, memory_picture, next_commands
from .asked import Asked, ask

OWN = "my own run"
REFRESH = 2.0
"""Seconds between two looks for the run."""
USUAL = PlanConfig()
RECIPE = Control(
    key="plan.recipe",
    label="Recipe",
    default=OWN,
    options=(OWN, *names()),
    help="A published run, whose model, lengths and batches are taken; `llmtrain recipes` lists them.",
)
GPU = Control(key="plan.gpu", label="GPU", default=USUAL.gpu, options=tuple(GPUS), help="Type of the GPUs.")
COUNT = Control(key="plan.gpus", label="GPUs", default=USUAL.gpus, low=1, help="Eight per node.")
BUDGET = Control(
    key="plan.budget", label="Budget", unit="GPU-hours", default=0, low=0, help="GPU-hours that you have; 0: not given."
)
PRICE = Control(
    key="plan.price",
    label="Price",
    unit="$ per GPU-hour",
    default=2.5,
    low=0.0,
    step=0.25,
    help="A round number: put in your own.",
)
MEAN = Control(
    key="plan.mean",
    label="Mean response",
    unit="tokens",
    default=0,
    low=0,
    help="The most important number: set it from your own first rollout. 0: a quarter of the longest.",
)
ROOM = Control(
    key="plan.room",
    label=f"Leave {ENOUGH:.0%} free",
    default=True,
    help="Lower gpu_memory_utilization until this share of a GPU stays free in rollout, if the KV cache can.",
)
OWN_RUN = {
    "model": Control(
        key="plan.model",
        label="Model",
        default=USUAL.model,
        options=tuple(model.name for model in MODELS.values()),
        help="Models whose architecture is known here; `llmtrain plan --model FOLDER` plans others.",
    ),
    "max_prompt_length": Control(
        key="plan.prompt",
        label="Longest prompt",
        unit="tokens",
        default=USUAL.max_prompt_length,
        low=1,
        help="Longer prompts are left out.",
    ),
    "max_response_length": Control(
        key="plan.response",
        label="Longest response",
        unit="tokens",
        default=USUAL.max_response_length,
        low=1,
        help="Longer responses are cut.",
    ),
    "prompts": Control(key="plan.prompts", label="Prompts", default=USUAL.prompts, low=1, help="Per rollout step."),
    "n": Control(key="plan.n", label="Responses per prompt", default=USUAL.n, low=2, help="Size of a group."),
    "mini_batch_size": Control(
        key="plan.mini",
        label="Prompts per optimizer step",
        default=USUAL.mini_batch_size,
        low=1,
        help="Times the responses per prompt it must be a multiple of the trainer's ranks.",
    ),
    "steps": Control(key="plan.steps", label="Rollout steps", default=USUAL.steps, low=1, help="Of the whole run."),
}
"""Controls of one's own run, by the key of the plan."""
PLACE = Sections(key="plan.place", label="Start on", default=next_commands.SLURM, options=next_commands.PLACES, help="")
NAME = Control(
    key="plan.name",
    label="Name of the run",
    default="first",
    help="Its folder is runs/NAME; it is looked for in --runs.",
)
LIVE = Control(
    key="plan.live", label="Wait for the run", default=False, help=f"Look for its folder every {REFRESH:g} seconds."
)


def page() -> None:
    """Draw the settings in the sidebar, the plan, the way to the run, and the run beside its plan."""
    st.title("Plan")
    with st.sidebar:
        recipe = RECIPE.draw()
        gpu, gpus = GPU.draw(), int(COUNT.draw())
        settings = {} if recipe != OWN else {key: control.draw() for key, control in OWN_RUN.items()}
        mean = MEAN.draw()
        budget, room = BUDGET.draw(), ROOM.draw()
    if mean:
        settings["mean_response_length"] = mean
    try:
        asked = ask("" if recipe == OWN else recipe, gpu, gpus, settings, room)
        st.fragment(draw_plan)(asked, budget)
        draw_commands(asked)
    except ValueError as error:
        st.error(plain(str(error)))


def draw_plan(asked: Asked, budget: float) -> None:
    """Draw hours and money, memory, and what the plan says in words."""
    plan = asked.plan
    if asked.fix:
        st.info(plain(f"It fits with {in_words(asked.fix)}, which is part of the plan."), icon=":material/build:")
    *columns, right = st.columns([1, 1, 1, 1], vertical_alignment="bottom")
    with right:
        price = PRICE.draw()
    hours = [factor * plan.gpu_hours for factor in factors()]
    numbers = {"Hours": between(hours, 1 / plan.config.gpus), "GPU-hours": between(hours)}
    numbers["Cost"] = between(hours, price, "$")
    for column, (label, value) in zip(columns, numbers.items(), strict=True):
        column.metric(label, value)
    st.caption(
        f"Published runs took {between(factors(), digits=1)} times the {plan.gpu_hours / plan.config.gpus:,.1f} hours "
        f"that the cost model of llmtrain plan alone would give; the numbers above include that. A step takes "
        f"{between([factor * plan.seconds for factor in factors()])} s."
    )
    drawn = memory_picture.picture(plan)
    left, right = st.columns([3, 2], gap="medium")
    with left, room("memory", memory_picture.HEIGHT):
        charts.show(drawn, key="plan.memory")
    with right:
        words = [line for line in summary(plan) if "GPU-hours" not in line]  # which are above
        st.info(plain("\n\n".join([*affordable(asked, budget), *words])), icon=":material/visibility:")
    exports.draw(drawn, "plan", [next_commands.plan_command(asked)])


@cache
def factors() -> tuple[float, float]:
    """Return the least and the most that a published run took, as multiples of its estimate."""
    found = [1 / ratio(run) for run in PUBLISHED]
    return min(found), max(found)


def between(ends: Sequence[float], unit: float = 1.0, sign: str = "", digits: int = 0) -> str:
    """Return a range of numbers, in units of 1 / `unit`, as text such as "$72–90"."""
    low, high = (f"{end * unit:,.{digits}f}" for end in ends)
    return f"{sign}{low}" if low == high else f"{sign}{low}–{high}"


def affordable(asked: Asked, budget: float) -> Sequence[str]:
    """Return what a budget in GPU-hours is enough for, as sentences; empty without a budget."""
    if not budget:
        return []
    plan, steps = asked.plan, asked.plan.config.steps
    most, least = (min(int(budget * steps / (factor * plan.gpu_hours)), steps) for factor in factors())
    return [f"{budget:,.0f} GPU-hours are enough for {between([least, most])} of {steps:,} steps."]


def draw_commands(asked: Asked) -> None:
    """Draw the trainer's settings, the commands to the run, and the run beside its plan once it is there."""
    settings = next_commands.settings_of(asked)
    st.header("To the run", anchor=False)
    left, right = st.columns(2, gap="medium")
    with left:
        place = PLACE.draw()
    with right:
        name = str(NAME.draw() or NAME.default)
    plan = asked.plan
    st.caption(f"Write the settings, or download {next_commands.FILE} below:")
    st.code(next_commands.plan_command(asked), language="shell", wrap_lines=True)
    st.caption(f"Try {next_commands.SMOKE_STEPS} steps first; put your model and questions in place of the capitals:")
    st.code(next_commands.run_command(plan, place, name, smoke=True), language="shell", wrap_lines=True)
    st.caption("Then train:")
    st.code(next_commands.run_command(plan, place, name), language="shell", wrap_lines=True)
    text = dump_yaml(settings)
    with st.expander(f"{next_commands.FILE}: the trainer's settings"):
        st.code(text, language="yaml")
    st.download_button(f"Download {next_commands.FILE}", text, next_commands.FILE, "text/yaml", on_click="ignore")
    st.header("Plan against measured", anchor=False)
    live = LIVE.draw()
    root = run_folder.folder()
    st.fragment(draw_measured, run_every=REFRESH if live else None)(root, asked, settings, name)


def draw_measured(root: Path, asked: Asked, settings: dict[str, Any], name: str) -> None:
    """Draw a table for the run and for its ten steps, if they are in the folder of runs."""
    known = False
    for run in (name, f"{name}{next_commands.SMOKE}"):
        try:
            found = against.measurements(root, run)
            if found is None:
                continue
            other = against.differences(settings, run_folder.config(root, run))
        except (ValueError, OSError) as error:
            st.error(plain(str(error) if isinstance(error, ValueError) else f"{run}: {error.strerror}"))
            known = True
            continue
        known = True
        st.markdown(f"**{plain(run)}**: medians of {len(found['entropy'])} steps, without the first if there are more")
        formats = {key: st.column_config.NumberColumn(format="%.3g") for key in ("plan", "measured", "measured / plan")}
        st.dataframe(against.table(asked.plan, found), hide_index=True, column_config=formats, key=f"plan.run.{run}")
        if other:
            st.warning(plain(f"It is another run than the plan's: {'; '.join(other)}."), icon=":material/warning:")
    if not known:
        st.caption(plain(f"Neither {name} nor {name}{next_commands.SMOKE} has finished a step in the folder of runs."))
