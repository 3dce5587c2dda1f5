"""The demo: one warm-up, then the same training under several controllers, and a picture of what became of the entropy.

python -m llmtrain.demo            about ten minutes on two CPU cores; writes runs/demo/
"""

import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from entrostat.commandline import Arguments, one_line_errors

from .config import TrainConfig
from .presets import get_preset

OUT = Path("runs/demo")
TARGET = 0.45
RUNS: dict[str, dict] = {
    "grpo": {"controller": "grpo"},
    "clip_higher": {"controller": "clip_higher"},
    "entropic": {"controller": "entropic", "target_entropy": TARGET},
    "thermostat": {"controller": "thermostat", "target_entropy": TARGET},
}


def configurations(base: TrainConfig) -> list[TrainConfig]:
    """The runs of the demo: the same seed, model and data, other controllers."""
    return [replace(base, out=str(OUT / name), overwrite=True, **changes) for name, changes in RUNS.items()]


@one_line_errors
def main(args: list[str]) -> int:
    from .compare import Run, figure, table
    from .run import claim, train_run

    parser = Arguments(prog="python -m llmtrain.demo", description="Train the demo's runs again.")
    parser.parse_args(args)
    console = Console()
    began = time.monotonic()
    configs = configurations(get_preset("countdown-cpu"))
    with ExitStack() as held:
        for config in configs:
            held.enter_context(claim(config.out))
        for config in configs:
            code = train_run(config)
            if code:
                return code
    runs = [Run.read(config.out) for config in configs]
    figure(runs, OUT / "entropy.png")
    console.print(table(runs))
    console.print(f"{OUT / 'entropy.png'}: entropy, reward and pass@8 of each run ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
