"""llmtrain: train language models by RLVR under an entropy controller.

    llmtrain train --preset countdown-cpu --controller entropic --target-entropy 0.4
    llmtrain train --preset countdown-cpu --controller clip_higher+steer --set lambda_min=0.8
    llmtrain resume runs/countdown
    llmtrain eval runs/countdown
    llmtrain train --preset countdown-ray
    llmtrain compare runs/demo/grpo runs/demo/entropic --out compare.png
    llmtrain sft --preset countdown-cpu --out runs/base

Settings of train: defaults < --preset < --config file.yaml < flags. `llmtrain COMMAND --help` lists the flags.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from entrostat.commandline import one_line_errors, parse_flags, parse_settings

from .config import PRESETS, TrainConfig, get_preset
from .launch import LostRankError, is_first, is_worker, launch
from .nested import load_yaml, merge
from .run import prepare, say, train_run


def read_config(args: list[str], prog: str) -> TrainConfig:
    """The configuration of a command line: defaults < --preset < --config < --set and flags."""
    first = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    first.add_argument("--preset")
    first.add_argument("--config")
    first.add_argument("--set", action="append", default=[])
    try:
        given, rest = first.parse_known_args(args)
    except argparse.ArgumentError as error:
        raise ValueError(f"{prog}: {error}") from None
    config = get_preset(given.preset) if given.preset else TrainConfig()
    if given.config:
        config = merge(config, load_yaml(given.config))
    if given.set:
        config = replace(config, controller_args={**config.controller_args, **parse_settings(given.set)})
    description = (
        "Settings: defaults < --preset < --config file.yaml < flags. "
        f"--preset NAME: {', '.join(PRESETS)}. --config FILE: YAML with the keys below. "
        "--set KEY=VALUE (any number of times): a hyperparameter of the controllers, such as --set kp=2. "
        "Example: llmtrain train --preset countdown-cpu --controller entropic --target-entropy 0.4 --set tau=0"
    )
    return parse_flags(TrainConfig, rest, prog=prog, description=description, default=config)


def train(args: list[str]) -> int:
    """Train a policy by RLVR."""
    config = read_config(args, "llmtrain train")
    from .trainer import check

    check(config)  # a mistake should not cost a warm-up
    if is_first() and (Path(config.out) / "config.yaml").exists() and not config.overwrite:
        raise ValueError(f"{config.out} holds a run: choose another --out, --overwrite it, or llmtrain resume it")
    return run(["train", *args], config)


def resume(args: list[str]) -> int:
    """Continue a run from its newest checkpoint."""
    parser = _parser("resume", resume.__doc__)
    parser.add_argument("run", help="folder of the run, such as runs/countdown")
    parser.add_argument("--steps", type=int, help="train to this rollout step instead of the configured one")
    given = parser.parse_args(args)
    config = _run_config(given.run)
    config = replace(config, steps=given.steps or config.steps)
    return run(["resume", *args], config, resuming=True)


def run(command: list[str], config: TrainConfig, resuming: bool = False) -> int:
    """Train in this process, as ranks of this machine, which get the same command, or as actors of a Ray cluster.

    ValueError names the last checkpoint when a rank is lost.
    """
    from .checkpoint import checkpoints

    try:
        if config.topology.name == "ray":
            from .ray_topology import train_on_ray

            prepare(config, resuming)
            return say(*train_on_ray(config, resuming))
        if config.nproc > 1 and not is_worker():
            return launch(command, config.nproc)
        return train_run(config, resuming)
    except LostRankError as error:
        good = checkpoints(config.out)
        where = f"last checkpoint: {good[-1]}" if good else "no checkpoint was written yet"
        raise ValueError(f"{error}; {where}") from None


def evaluate(args: list[str]) -> int:
    """Evaluate a run's newest checkpoint, or a model folder, on held-out problems."""
    parser = _parser("eval", evaluate.__doc__)
    parser.add_argument("path", help="a run, such as runs/countdown, or a model folder")
    parser.add_argument("--preset", default="countdown-cpu", help="task and sampling when PATH is a model folder")
    parser.add_argument("--samples", type=int, help="responses to each problem")
    given = parser.parse_args(args)
    path = Path(given.path)
    is_run = (path / "checkpoints").is_dir()
    config = _run_config(path) if is_run else get_preset(given.preset)
    if given.samples:
        config = replace(config, eval=replace(config.eval, samples=given.samples))
    from .checkpoint import latest
    from .evaluate import evaluate_model

    print(json.dumps(evaluate_model(config, latest(path) if is_run else path), indent=2))
    return 0


def sft(args: list[str]) -> int:
    """Build a small model and warm it up on examples."""
    config = read_config(args, "llmtrain sft")
    if Path(config.out).exists() and not config.overwrite:
        raise ValueError(f"{config.out} exists: choose another --out or pass --overwrite")
    from .display import WarmUpDisplay
    from .warmup import build_and_warm_up

    build_and_warm_up(config, Path(config.out), WarmUpDisplay(config.sft.steps))
    print(f"done: {config.out}")
    return 0


def compare(args: list[str]) -> int:
    """Compare runs: a table, and a figure of entropy, reward and pass@k."""
    parser = _parser("compare", compare.__doc__)
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--out", default="compare.png", help="figure to write (.png, .svg or .pdf)")
    given = parser.parse_args(args)
    from rich.console import Console

    from .compare import Run, figure, table

    runs = [Run.read(path) for path in given.runs]
    figure(runs, given.out)
    Console().print(table(runs))
    print(f"figure: {given.out}")
    return 0


def bench(args: list[str]) -> int:
    """Measure speed and memory: llmtrain bench kernels."""
    from .bench import bench as run

    return run(args)


def launch_job(args: list[str]) -> int:
    """Train on a Ray cluster that is running already: llmtrain launch --address URL train ..."""
    from .ray_launch import launch as run

    return run(args)


def plan(args: list[str]) -> int:
    """Estimate memory, time and cost of a run without a GPU."""
    from .plan.command import plan as run

    return run(args)


def doctor(args: list[str]) -> int:
    """Try what works on this machine: torch, CUDA, NCCL, DeepSpeed, vLLM, Ray."""
    from .doctor import doctor as run

    return run(args)


def score(args: list[str]) -> int:
    """Judge the responses of a file: llmtrain score --verifier math --in FILE --out FILE."""
    from .verifiers.score import score as run

    return run(args)


def _run_config(run: str | Path) -> TrainConfig:
    """The configuration a run was started with."""
    if not (Path(run) / "config.yaml").is_file():
        raise ValueError(f"{run} is not a run: it has no config.yaml")
    return merge(TrainConfig(), load_yaml(Path(run) / "config.yaml"))


def _parser(command: str, about: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"llmtrain {command}", description=about)


COMMANDS = {
    "train": train,
    "resume": resume,
    "eval": evaluate,
    "compare": compare,
    "sft": sft,
    "bench": bench,
    "plan": plan,
    "launch": launch_job,
    "doctor": doctor,
    "score": score,
}


@one_line_errors
def main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        print(__doc__)
        print("\n".join(f"  {name:8} {command.__doc__}" for name, command in COMMANDS.items()))
        return 0
    if args[0] not in COMMANDS:
        raise ValueError(f"unknown command {args[0]!r}; choose from {', '.join(COMMANDS)}")
    return COMMANDS[args[0]](args[1:])


if __name__ == "__main__":
    sys.exit(main())
