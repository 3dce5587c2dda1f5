"""llmtrain sft: supervised warm-up with the settings of train."""

from pathlib import Path

from entrostat.settings.out_folder import LOCK, check_own

from ..process.local_ranks import is_first, is_worker, launch
from ..reproduction.asked import is_recipe
from ..reproduction.recipe_config import for_warm_up, read_recipe_config
from ..settings.presets import read_config
from ..training.run import claim


def main(args: list[str]) -> int:
    """Run a supervised warm-up with the settings of train, and return the exit code.

    The published model of a preset is made first.
    """
    example = "llmtrain sft --preset countdown-cpu --sft.steps 300 --out runs/base"
    if is_recipe(args):
        config = read_recipe_config(args, "llmtrain sft", for_warm_up)
    else:
        config = read_config(args, "llmtrain sft", example, out="runs/sft")
    from ..policy.gguf_model import make_published
    from ..training.check import check_sft

    if is_first():
        make_published(config.model.path)
    check_sft(config)
    there = any(path.name != LOCK for path in Path(config.out).glob("*"))
    if is_first() and there and not config.overwrite:
        raise ValueError(f"{config.out} exists: choose another --out or pass --overwrite")
    from ..training.warmup import sft_run, written_files

    with claim(config.out):
        if is_first():
            check_own(config.out, written_files(Path(config.out)))
        if config.nproc == 1 or is_worker():
            return sft_run(config)
    return launch(["sft", *args], config.nproc)
