"""`llmtrain probe-entropy`: test of estimators of a token's entropy change on a language model.

    llmtrain probe-entropy runs/countdown --steps 160,165 --sgd
    llmtrain probe-entropy --preset countdown-cpu --steps 0,5,10 --out runs/probe --controller steer

Trains up to the last of the steps and writes probe.md, probe.json and probe.png next to the log of that training. It
starts from the run's newest checkpoint at or before the first of the steps, or from the run's start model.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from entrostat.settings.commandline import Arguments
from entrostat.settings.out_folder import check_own

from ..settings.config import LogConfig, TrainConfig
from ..settings.presets import read_config

PROG = "llmtrain probe-entropy"
RUN_LOG = ("config.yaml", "manifest.json", "metrics.jsonl", "samples.jsonl")
WRITTEN = (*RUN_LOG, "probe.md", "probe.json", "probe.png", "checkpoints")
"""Names that a probe writes, and that another one replaces."""


def main(args: list[str]) -> int:
    """Compare estimators of tokens' entropy change with the change made by an optimizer step."""
    parser = Arguments(
        prog=PROG,
        description=__doc__,
        usage=f"{PROG} RUN | FLAGS OF TRAIN  --steps 0,5,10 [--sgd] [--alone N] [--first-order] [--out FOLDER] "
        "[--overwrite]",
    )
    parser.add_argument("--steps", default="0,5,10", help="rollout steps whose first update is probed (0,5,10)")
    parser.add_argument("--sgd", action="store_true", help="also probe a step of plain gradient descent, as long")
    parser.add_argument("--alone", type=int, default=0, help="also probe N tokens, each updated alone")
    parser.add_argument("--first-order", action="store_true", help="also predict to first order in shared weights")
    parser.add_argument("--out", help="output folder; RUN/probe or runs/probe by default")
    parser.add_argument("--overwrite", action="store_true", help="replace a probe in that folder")
    run = None if not args or args[0].startswith("-") else args[0]
    given, rest = parser.parse_known_args(args[run is not None :])
    steps = read_steps(given.steps)
    if given.alone < 0:
        raise ValueError(f"--alone must not be negative; got {given.alone}")
    out = Path(given.out or f"{run or 'runs'}/probe")
    from ..policy.checkpoint import checkpoints
    from ..training.run import run_config

    if out.exists() and not given.overwrite:
        raise ValueError(f"{out} exists: choose another --out, or pass --overwrite")
    if any(not path.is_symlink() for path in checkpoints(out)):
        raise ValueError(f"{out} contains a run with checkpoints, which is never overwritten: choose another --out")
    check_own(out, WRITTEN)
    if run and rest:
        raise ValueError(f"{PROG}: {rest[0]} cannot be given with a run, which has its own settings")
    config = run_config(run) if run else read_config(rest, PROG)
    config = replace(
        config,
        out=str(out),
        steps=max(config.steps, steps[-1] + 1),
        eval=replace(config.eval, every=0),
        log=LogConfig(tensorboard=False),
    )
    return measure(config, steps, run, sgd=given.sgd, alone=given.alone, first_order=given.first_order)


def read_steps(text: str) -> list[int]:
    """Return rollout steps, ascending. Raises ValueError unless they are integers from 0."""
    try:
        steps = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ValueError(f"--steps must be rollout steps such as 0,5,10, not {text!r}") from None
    if steps[0] < 0:
        raise ValueError(f"--steps must not be negative; got {steps[0]}")
    return steps


def measure(config: TrainConfig, steps: list[int], run: str | None, **tried: Any) -> int:
    """Train, probe, write and print; return the exit code. tried: options of `Walk`."""
    from ..policy.checkpoint import checkpoints, step_of
    from ..studies.probe_page import figure, page, summary, to_json
    from ..studies.probe_walk import Walk, check
    from ..training.check import check as check_run
    from ..training.display import TrainDisplay, WarmUpDisplay
    from ..training.rules import make_controller
    from ..training.warmup import start_model

    check(config)
    check_run(config)
    out = Path(config.out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    resume = run is not None and link_checkpoint(Path(run), out, steps[0])
    with WarmUpDisplay(config.sft.steps) as warming:
        model = out if resume else start_model(config, warming)
    first = step_of(checkpoints(out)[-1]) if resume else 0
    with TrainDisplay(config.controller, steps[-1] + 1, first, controller=make_controller(config)) as report:
        probes = Walk(config, model, steps, resume=resume, **tried).walk(report)
    title = f"{run or config.model.path or config.task.name}, {config.controller}"
    (out / "probe.md").write_text(page(probes, title))
    (out / "probe.json").write_text(json.dumps(to_json(probes), indent=2) + "\n")
    figure(probes, out / "probe.png")
    from rich.console import Console

    Console().print(*summary(probes), sep="\n")
    print(f"{out / 'probe.md'}, probe.json, probe.png")
    return 0


def link_checkpoint(run: Path, out: Path, first: int) -> bool:
    """Link the run's newest checkpoint at or before rollout step `first` into `out`; return whether there is one."""
    from ..policy.checkpoint import checkpoints, step_of

    usable = [path for path in checkpoints(run) if step_of(path) <= first]
    if not usable:
        return False
    (out / "checkpoints").mkdir()
    (out / "checkpoints" / usable[-1].name).symlink_to(usable[-1].resolve(), target_is_directory=True)
    return True
