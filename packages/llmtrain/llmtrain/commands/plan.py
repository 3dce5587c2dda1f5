"""`llmtrain plan` on the command line."""

import json
import shlex
import sys
from pathlib import Path

from entrostat.settings.commandline import Arguments, parse_flags, parse_settings, writing
from entrostat.settings.commandline_help import tell
from entrostat.settings.field_types import merge
from entrostat.settings.plain_yaml import dump_yaml, load_yaml

from ..plan.cost import make_plan
from ..plan.handover import train_settings
from ..plan.plan_config import PlanConfig
from ..plan.plan_presets import PRESETS, Preset, get_preset, place
from ..plan.plan_report import show, to_json
from ..recipes.recipe import get_recipe

PROG = "llmtrain plan"
ABOUT = f"""\
Estimate memory, time and GPU-hours of a run before it starts; no GPU is needed. An impossible configuration ends with
an error that names the fix.

  llmtrain plan --list                                   presets and the sources of their values
  llmtrain plan --preset qwen3-8b-64gpu                  the published 8B run
  llmtrain plan --recipe steer/qwen2.5-math-7b --gpus 8  a recipe, see llmtrain recipes
  llmtrain plan --preset qwen3-8b-64gpu --gpu h100 --gpus 32 --set mean_response_length=4000
  llmtrain plan --model runs/my-model --gpus 8 --json    a local config.json; numbers for a program
  llmtrain plan --preset qwen3-8b-64gpu --write run.yaml    settings for llmtrain train --config run.yaml

Settings: defaults < --preset or --recipe NAME < --config FILE (YAML with the keys below) < --set KEY=VALUE < flags.
--json prints the plan as JSON, memory in bytes and times in seconds. --write FILE writes the trainer's settings for it.
Presets: {", ".join(PRESETS)}.
"""


def main(args: list[str]) -> int:
    """Estimate memory, time and cost of a run."""
    first = Arguments(prog=PROG, add_help=False)
    first.add_argument("--preset")
    first.add_argument("--recipe")
    first.add_argument("--config")
    first.add_argument("--set", action="extend", nargs="+", default=[])
    first.add_argument("--json", action="store_true")
    first.add_argument("--list", action="store_true")
    first.add_argument("--write")
    given, rest = first.parse_known_args(args)
    if given.list:
        return list_presets()
    if given.recipe and given.preset:
        raise ValueError(f"{PROG}: --preset and --recipe exclude each other: leave one out")
    preset = placed(given.recipe, rest) if given.recipe else get_preset(given.preset) if given.preset else None
    config = read_config(preset, given.config, given.set, rest)
    made = make_plan(config)
    if given.write:
        settings = train_settings(made, preset)
        with writing(given.write):
            Path(given.write).write_text(dump_yaml(settings))
    if given.json:
        json.dump(to_json(made), sys.stdout, indent=2)
        print()
        return 0
    from rich.console import Console

    console = Console()
    show(made, console if console.is_terminal else Console(width=120), preset)
    if not given.write and config.zero_stage:
        tell(f"next, the trainer's settings for this plan: {shlex.join([*PROG.split(), *args, '--write', 'run.yaml'])}")
    if given.write:
        model = "" if "model" in settings else " --model.path FOLDER"
        train = f"llmtrain train --config {given.write}{model} --data.train-files FILE --out runs/NAME"
        tell(f"wrote {given.write}; next: {train}")
    return 0


def placed(recipe: str, flags: list[str]) -> Preset:
    """Return a recipe, placed on the GPUs that the flags name."""
    here = Arguments(prog=PROG, add_help=False)
    here.add_argument("--gpus", type=int)
    here.add_argument("--gpu")
    given, _ = here.parse_known_args(flags)
    return place(get_recipe(recipe), given.gpus, given.gpu)


def read_config(preset: Preset | None, file: str | None, settings: list[str], flags: list[str]) -> PlanConfig:
    """Return the configuration from defaults < preset < file < settings < flags; later ones override earlier ones."""
    config = preset.config if preset else PlanConfig()
    for changes in (load_yaml(file) if file else {}, parse_settings(settings)):
        config = merge(config, changes)
    return parse_flags(PlanConfig, flags, prog=PROG, description=ABOUT, default=config)


def list_presets() -> int:
    """Print the presets with their sources, and return exit code 0."""
    for name, preset in PRESETS.items():
        config = preset.config
        tell(f"{name:22} {config.gpus:>2} {config.gpu:5} {preset.source}")
    return 0
