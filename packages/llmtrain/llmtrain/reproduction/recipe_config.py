"""Settings of the trainer for a recipe.

    llmtrain train --recipe steer/qwen2.5-math-7b --gpus 8 --optim.lr 2e-6

Settings: the recipe, placed on the GPUs by `llmtrain plan` < --config < --set and flags.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entrostat.settings.commandline import Arguments
from entrostat.settings.field_types import merge

from ..evaluation.paper_settings import longest_response
from ..plan.cost import Plan, make_plan
from ..plan.handover import train_settings
from ..plan.plan_presets import place
from ..recipes.recipe import Recipe, get_recipe
from ..settings.config import TrainConfig
from ..settings.presets import read_config
from .ingredients import MODELS, check_positions, data, data_folder, hub_model, missing, model

NODE = 8
"""GPUs of a node."""


@dataclass(frozen=True)
class Asked:
    """Flags of a command line that concern the recipe, not the trainer."""

    recipe: Recipe
    gpus: int
    gpu: str | None
    shrink: bool
    data_dir: str
    models_dir: str
    rest: list[str]
    """Remaining arguments."""


def is_recipe(args: list[str]) -> bool:
    """Return True if a command line names a recipe."""
    return any(item.partition("=")[0] == "--recipe" for item in args)


def read_asked(args: list[str], prog: str) -> Asked:
    """Return the flags of a command line that concern the recipe."""
    first = Arguments(prog=prog, add_help=False)
    first.add_argument("--recipe", required=True)
    first.add_argument("--gpus", type=int)
    first.add_argument("--nodes", type=int)
    first.add_argument("--gpu")
    first.add_argument("--shrink", action="store_true")
    first.add_argument("--data-dir", default=data_folder())
    first.add_argument("--models-dir", default=MODELS)
    given, rest = first.parse_known_args(args)
    recipe = get_recipe(given.recipe)
    if given.gpus and given.nodes:
        raise ValueError(f"{prog}: --nodes {given.nodes} is --gpus {NODE * given.nodes}: give one of them")
    gpus = given.gpus or NODE * (given.nodes or 0) or recipe.gpus
    if gpus < 1:
        raise ValueError(f"{prog}: --gpus must be at least 1; got {gpus}")
    return Asked(recipe, gpus, given.gpu, given.shrink, given.data_dir, given.models_dir, rest)


def planned(asked: Asked) -> Plan:
    """Return the plan of a recipe on the GPUs asked for. Raise ValueError with the fix if it does not fit."""
    try:
        return make_plan(place(asked.recipe, asked.gpus, asked.gpu).config)
    except ValueError as error:
        raise ValueError(
            f"recipe {asked.recipe.name} on {asked.gpus} GPUs: {error}; try `llmtrain plan --recipe "
            f"{asked.recipe.name} --gpus N --gpu TYPE`, or --shrink for a small form of it"
        ) from None


def full_config(asked: Asked, plan: Plan) -> TrainConfig:
    """Return the settings of a recipe without its model and data; engines take its evaluations' responses too."""
    preset = place(asked.recipe, asked.gpus, asked.gpu)
    settings: dict[str, Any] = train_settings(plan, preset)
    settings["out"] = f"runs/{asked.recipe.name}"
    settings["eval"]["every"] = asked.recipe.value("eval.every", 0)
    settings["checkpoint"] = {"keep_best": asked.recipe.value("checkpoint.keep_best", "")}
    config = merge(TrainConfig(), settings)
    longest = config.data.max_prompt_length + longest_response(config)
    if longest > plan.memory.kv_tokens:
        raise ValueError(
            f"recipe {asked.recipe.name}: a prompt and response in evaluation take {longest} tokens and the engine's "
            f"memory {plan.memory.kv_tokens:.0f}: lower --eval.max-new-tokens or plan on larger GPUs with --gpu"
        )
    return replace(config, rollout=replace(config.rollout, max_model_len=max(config.rollout.max_model_len, longest)))


def with_ingredients(config: TrainConfig, asked: Asked) -> TrainConfig:
    """Return the settings with the paths of model and data sets, whether these are there or not."""
    recipe, found = asked.recipe, data(asked.recipe, asked.data_dir)
    train, val = (
        tuple(str(found[name].path) for name in recipe.value(key, ())) for key in ("data.train_files", "data.val_files")
    )
    return replace(
        config,
        model=replace(config.model, path=str(model(recipe, asked.models_dir).path)),
        data=replace(config.data, train_files=train, val_files=val),
        eval=config.eval if val else replace(config.eval, every=0),
    )


def read_recipe_config(
    args: list[str], prog: str, adapt: Callable[[TrainConfig], TrainConfig] = lambda config: config
) -> TrainConfig:
    """Return the settings of a command line with --recipe. Raise ValueError if something that it needs is missing.

    adapt: changes the recipe's settings before flags do.
    """
    asked = read_asked(args, prog)
    if asked.shrink:
        from .shrink import shrunk

        return read_config(asked.rest, prog, base=adapt(shrunk(asked)))
    plan = planned(asked)
    base = adapt(with_ingredients(full_config(asked, plan), asked))
    config = read_config(asked.rest, prog, base=base)
    if config.device == "cuda" and not config.topology.address:
        check_gpus(asked, plan)  # before files: who has too few GPUs need not download them
    return with_files(config, base, asked)


def for_warm_up(config: TrainConfig) -> TrainConfig:
    """Return the settings of a recipe for a supervised warm-up before it, on worked solutions that flags name."""
    data = replace(config.data, train_files=(), val_files=(), keep=())
    return replace(config, out=f"{config.out}-sft", data=data, eval=replace(config.eval, every=0))


def with_files(config: TrainConfig, base: TrainConfig, asked: Asked) -> TrainConfig:
    """Return the settings with the folder of a model named as on the hub.

    Raises ValueError with all that is missing, and the command that gets it.
    """
    path, wanted = str(config.model.path), None
    if path == base.model.path:
        wanted = model(asked.recipe, asked.models_dir)
    elif not Path(path).is_dir() and path.count("/") == 1:
        wanted = hub_model(path, asked.models_dir)
    files = bool(base.data.train_files) and config.data.train_files == base.data.train_files
    if lacks := missing(asked.recipe, asked.data_dir, wanted, files=files):
        raise ValueError(lacks)
    found = replace(config, model=replace(config.model, path=str(wanted.path if wanted else path)))
    check_positions(asked.recipe, Path(str(found.model.path)))
    return found


def check_gpus(asked: Asked, plan: Plan) -> None:
    """Raise ValueError with the command that helps if this machine has fewer or smaller GPUs or less memory."""
    import torch

    name, has = asked.recipe.name, torch.cuda.device_count()
    if has < asked.gpus:
        fewer = f"--gpus {has}" if has else "--shrink for a small form of it on the CPU"
        raise ValueError(
            f"recipe {name} is placed on {asked.gpus} GPUs and this machine has {has}: use {fewer}, "
            f"or --topology.address HOST:PORT of a Ray cluster; `llmtrain plan --recipe {name} --gpus N` says what fits"
        )
    least = min(torch.cuda.get_device_properties(i).total_memory for i in range(has))
    if least < 0.95 * plan.layout.gpu.memory:
        gpu = plan.layout.gpu
        raise ValueError(
            f"recipe {name} is planned for {gpu.name.upper()} of {gpu.memory / 2**30:.0f} GiB and this machine's GPUs "
            f"have {least / 2**30:.0f}: choose with `llmtrain plan --recipe {name} --gpu TYPE`"
        )
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if host < (needed := max(plan.memory.host, plan.memory.loading)):
        raise ValueError(
            f"recipe {name} on {asked.gpus} GPUs needs {needed / 2**30:.0f} GiB of host memory and this machine has "
            f"{host / 2**30:.0f}: use more GPUs, so that less is offloaded; `llmtrain plan --recipe {name} --gpus N`"
        )
