"""llmtrain train: start a new run."""

from pathlib import Path

from ..cluster.start_run import start_run
from ..process.local_ranks import is_first
from ..reproduction.asked import is_recipe
from ..reproduction.recipe_config import read_recipe_config
from ..settings.complaints import postponed
from ..settings.presets import read_config

REPLACED = (
    "config.yaml",
    "manifest.json",
    "metrics.jsonl",
    "samples.jsonl",
    "probes.jsonl.gz",
    "checkpoints",
    "tensorboard",
    "wandb_id",
)
"""Files of a run folder that a new run replaces."""


def main(args: list[str]) -> int:
    """Start a new run, and return its exit code."""
    with postponed():
        config = read_recipe_config(args, "llmtrain train") if is_recipe(args) else read_config(args, "llmtrain train")
    from ..training.check import check

    check(config)  # a mistake should not cost a warm-up
    found = [name for name in REPLACED if (Path(config.out) / name).exists()]
    if is_first() and found and not config.overwrite:
        raise ValueError(
            f"{config.out} contains {', '.join(found)}: choose another --out, pass --overwrite, or use llmtrain resume"
        )
    return start_run(["train", *args], config)
