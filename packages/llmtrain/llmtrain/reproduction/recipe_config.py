"""Settings of the trainer for a recipe.

    llmtrain train --recipe steer/qwen2.5-math-7b --gpus 8 --optim.lr 2e-6

Settings: the recipe, placed on the GPUs by `llmtrain plan` < --config < --set and flags.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..plan.cost import RunPlan
from ..settings.config import TrainConfig
from ..settings.presets import read_config
from .asked import Asked, read_asked
from .ingredients import check_positions, data, hub_model, missing, model
from .placed import full_config, placed_as_asked
from .shrink import shrunk


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
        return read_config(asked.rest, prog, base=adapt(shrunk(asked)))
    found = placed_as_asked(asked)
    base = adapt(with_ingredients(full_config(found), asked))
    config = read_config(asked.rest, prog, base=base)
    if config.device == "cuda" and not config.topology.address:
        check_gpus(asked, found.plan)  # before files: who has too few GPUs need not download them
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


def check_gpus(asked: Asked, plan: RunPlan) -> None:
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
