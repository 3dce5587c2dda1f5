"""`llmtrain probe-entropy`: which estimator of a token's entropy change is right about a language model?

    llmtrain probe-entropy runs/countdown --steps 160,165 --sgd
    llmtrain probe-entropy --preset countdown-cpu --steps 0,5,10 --out runs/probe --controller steer

Trains up to the last of the steps and writes probe.md, probe.json and probe.png beside the log of that training. It
begins at the run's newest checkpoint at or before the first of the steps; without one, where the run began.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from entrostat.commandline import Arguments

from ..policy.checkpoint import checkpoints, step_of
from ..settings.config import LogConfig, TrainConfig
from ..settings.presets import read_config
from ..training.run import run_config

PROG = "llmtrain probe-entropy"


def main(args: list[str]) -> int:
    """Compare estimators of the entropy change of tokens with the change that an optimizer step makes."""
    parser = Arguments(
        prog=PROG,
        description=__doc__,
        usage=f"{PROG} RUN | FLAGS OF TRAIN  --steps 0,5,10 [--sgd] [--alone N] [--first-order] [--out FOLDER] "
        "[--overwrite]",
    )
    parser.add_argument("--steps", default="0,5,10", help="rollout steps whose first update is looked at (0,5,10)")
    parser.add_argument("--sgd", action="store_true", help="also try a step of plain gradient descent, as long")
    parser.add_argument("--alone", type=int, default=0, help="also try so many tokens, each with its own part of it")
    parser.add_argument("--first-order", action="store_true", help="also what theory of the shared weights would say")
    parser.add_argument("--out", help="folder to write to; RUN/probe or runs/probe when not given")
    parser.add_argument("--overwrite", action="store_true", help="replace a probe that lies there")
    run = None if not args or args[0].startswith("-") else args[0]
    given, rest = parser.parse_known_args(args[run is not None :])
    steps = read_steps(given.steps)
    if given.alone < 0:
        raise ValueError(f"--alone must not be negative; got {given.alone}")
    out = Path(given.out or f"{run or 'runs'}/probe")
    if out.exists() and not given.overwrite:
        raise ValueError(f"{out} exists: choose another --out, or pass --overwrite")
    if any(not path.is_symlink() for path in checkpoints(out)):
        raise ValueError(f"{out} holds a run with checkpoints, which is not overwritten: choose another --out")
    if out.exists() and any(out.iterdir()) and not (out / "config.yaml").is_file():
        raise ValueError(f"{out} holds something else than a probe, which is not overwritten: choose another --out")
    if run and rest:
        raise ValueError(f"{PROG}: {rest[0]} cannot be given with a run, which has settings of its own")
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
    """Rollout steps, ascending; ValueError when they are not numbers from 0."""
    try:
        steps = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ValueError(f"--steps must be rollout steps such as 0,5,10, not {text!r}") from None
    if steps[0] < 0:
        raise ValueError(f"--steps must not be negative; got {steps[0]}")
    return steps


def measure(config: TrainConfig, steps: list[int], run: str | None, **tried: Any) -> int:
    """Train, probe, write and print. tried: what else, as `Walk` takes it."""
    from ..studies.probe_page import figure, page, summary, to_json
    from ..studies.probe_walk import Walk, check
    from ..training.check import check as check_run
    from ..training.display import TrainDisplay, WarmUpDisplay
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
    with TrainDisplay(config.controller, steps[-1] + 1, first) as report:
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
    """Link the newest checkpoint of the run at or before rollout step `first` into `out`; whether there is one."""
    usable = [path for path in checkpoints(run) if step_of(path) <= first]
    if not usable:
        return False
    (out / "checkpoints").mkdir()
    (out / "checkpoints" / usable[-1].name).symlink_to(usable[-1].resolve(), target_is_directory=True)
    return True
