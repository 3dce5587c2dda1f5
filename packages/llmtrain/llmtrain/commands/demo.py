"""Demo: one warm-up, then the same training under several controllers, and a picture of their entropies.

llmtrain demo     six minutes on two CPU cores; writes runs/demo/, and updates the picture after every run
"""

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from entrostat.settings.commandline import Arguments

from ..settings.config import TrainConfig
from ..settings.presets import get_preset

OUT = Path("runs/demo")
PICTURE = OUT / "entropy.png"
STEPS = 300
RUNS: dict[str, dict] = {
    "grpo": {"controller": "grpo"},
    "clip_higher": {"controller": "clip_higher"},
    "thermostat": {"controller": "thermostat", "target": 0.26, "controller_args": {"mode": "anchor"}},
}


def base() -> TrainConfig:
    """Return the settings of all runs: problems that never repeat, and enough held-out ones to tell runs apart."""
    preset = get_preset("countdown-cpu")
    problems = STEPS * preset.rollout.prompts
    return replace(
        preset,
        steps=STEPS,
        overwrite=True,
        task=replace(preset.task, name="countdown-wide", train_problems=problems, test_problems=256),
        eval=replace(preset.eval, every=STEPS // 5),
    )


def configurations() -> list[TrainConfig]:
    """Return the demo's runs: different controllers with the same seed, model and data."""
    return [replace(base(), out=str(OUT / name), **changes) for name, changes in RUNS.items()]


def main(args: list[str]) -> int:
    """Train the demo's runs, print a table, and return the exit code."""
    from ..studies.comparison import Run, figure, table
    from ..training.run import claim, train_run

    parser = Arguments(prog="llmtrain demo", description="Train the demo's runs.")
    parser.parse_args(args)
    console = Console()
    began = time.monotonic()
    configs = configurations()
    with ExitStack() as held:
        for config in configs:
            held.enter_context(claim(config.out))
        for done, config in enumerate(configs, 1):
            code = train_run(config)
            if code:
                return code
            runs = [Run.read(trained.out) for trained in configs[:done]]
            figure(runs, PICTURE)
            took = time.monotonic() - began
            console.print(f"{PICTURE}: entropy, reward and pass@8 of {done} of {len(configs)} runs ({took:.0f} s)")
    console.print(table(runs))
    return 0
