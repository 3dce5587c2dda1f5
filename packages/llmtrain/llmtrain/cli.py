"""llmtrain: train language models by RLVR under an entropy controller.

    llmtrain train --preset countdown-cpu --controller entropic --target-entropy 0.4
    llmtrain train --preset countdown-cpu --controller clip_higher+steer --set lambda_min=0.8
    llmtrain resume runs/countdown
    llmtrain train --preset math-cpu --data.train-files DAPO-Math-17k.parquet
    llmtrain eval runs/countdown
    llmtrain eval Qwen2.5-Math-7B --data aime24.parquet math500.parquet --settings steer
    llmtrain train --preset countdown-ray
    llmtrain compare runs/demo/grpo runs/demo/entropic --out compare.png
    llmtrain sft --preset countdown-cpu --sft.steps 300

Settings of train: defaults < --preset < --config file.yaml < flags. `llmtrain COMMAND --help` lists the flags.
"""

import argparse
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from entrostat.commandline import one_line_errors, parse_flags, parse_settings
from entrostat.plain_yaml import load_yaml

from .config import TrainConfig
from .launch import LostRankError, is_first, is_worker, launch
from .nested import merge
from .presets import PRESETS, get_preset
from .run import LOCK, claim, prepare, say, train_run

REPLACED = ("config.yaml", "manifest.json", "metrics.jsonl", "samples.jsonl", "checkpoints", "tensorboard", "wandb_id")
"""What a new run replaces in its folder."""
TRAIN_EXAMPLE = "llmtrain train --preset countdown-cpu --controller entropic --target-entropy 0.4 --set tau=0"


def read_config(args: list[str], prog: str, example: str = TRAIN_EXAMPLE, out: str | None = None) -> TrainConfig:
    """The configuration of a command line: defaults < --preset < --config < --set and flags.

    example: shown by --help. out: a default for `out` in place of those of train and of the preset.
    """
    first = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    first.add_argument("--preset")
    first.add_argument("--config")
    first.add_argument("--set", action="append", default=[])
    try:
        given, rest = first.parse_known_args(args)
    except argparse.ArgumentError as error:
        raise ValueError(f"{prog}: {error}") from None
    config = get_preset(given.preset) if given.preset else TrainConfig()
    config = replace(config, out=out or config.out)
    if given.config:
        config = merge(config, load_yaml(given.config))
    if given.set:
        config = replace(config, controller_args={**config.controller_args, **parse_settings(given.set)})
    description = (
        "Settings: defaults < --preset < --config file.yaml < flags. "
        f"--preset NAME: {', '.join(PRESETS)}. --config FILE: YAML with the keys below. "
        "--set KEY=VALUE (any number of times): a hyperparameter of the controllers, such as --set kp=2. "
        f"Example: {example}"
    )
    return parse_flags(TrainConfig, rest, prog=prog, description=description, default=config)


def train(args: list[str]) -> int:
    """Train a policy by RLVR."""
    config = read_config(args, "llmtrain train")
    from .check import check

    check(config)  # a mistake should not cost a warm-up
    found = [name for name in REPLACED if (Path(config.out) / name).exists()]
    if is_first() and found and not config.overwrite:
        raise ValueError(
            f"{config.out} holds {', '.join(found)}: choose another --out, --overwrite it, or llmtrain resume it"
        )
    return run(["train", *args], config)


def resume(args: list[str]) -> int:
    """Continue a run from its newest checkpoint."""
    from .checkpoint import latest, step_of

    parser = _parser("resume", resume.__doc__)
    parser.add_argument("run", help="folder of the run, such as runs/countdown")
    parser.add_argument("--steps", type=int, help="train to this rollout step instead of the configured one")
    given = parser.parse_args(args)
    config = replace(_run_config(given.run), out=str(Path(given.run)))
    if given.steps is not None:
        done = step_of(latest(given.run))
        if given.steps < done:
            raise ValueError(f"--steps {given.steps}: {given.run} has done {done}; give {done} or more")
        config = replace(config, steps=given.steps)
    return run(["resume", *args], config, resuming=True)


def run(command: list[str], config: TrainConfig, resuming: bool = False) -> int:
    """Train in this process, as ranks of this machine, which get the same command, or as actors of a Ray cluster.

    ValueError names the last checkpoint when a rank is lost.
    """
    from .checkpoint import checkpoints

    try:
        with claim(config.out):
            if config.topology.name == "ray":
                from .cluster.topology import train_on_ray

                prepare(config, resuming)
                return say(*train_on_ray(config, resuming))
            if config.nproc == 1 or is_worker():
                return train_run(config, resuming)
        return launch(command, config.nproc)  # whose first rank claims the folder
    except LostRankError as error:
        good = checkpoints(config.out)
        where = f"last checkpoint: {good[-1]}" if good else "no checkpoint was written yet"
        raise ValueError(f"{error}; {where}") from None


def sft(args: list[str]) -> int:
    """Warm a model up on examples or worked solutions: a built one, or that of model.path."""
    example = "llmtrain sft --preset countdown-cpu --sft.steps 300 --out runs/base"
    config = read_config(args, "llmtrain sft", example, out="runs/sft")
    there = any(path.name != LOCK for path in Path(config.out).glob("*"))
    if is_first() and there and not config.overwrite:
        raise ValueError(f"{config.out} exists: choose another --out or pass --overwrite")
    from .check import check_ranks
    from .warmup import sft_run

    check_ranks(config)
    with claim(config.out):
        if config.nproc == 1 or is_worker():
            return sft_run(config)
    return launch(["sft", *args], config.nproc)


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


def _run_config(run: str | Path) -> TrainConfig:
    """The configuration a run was started with."""
    if not (Path(run) / "config.yaml").is_file():
        raise ValueError(f"{run} is not a run: it has no config.yaml")
    return merge(TrainConfig(), load_yaml(Path(run) / "config.yaml"))


def _parser(command: str, about: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"llmtrain {command}", description=about)


COMMANDS = {"train": train, "resume": resume, "sft": sft, "compare": compare}
ELSEWHERE = {
    "eval": ("evaluation.command:evaluate", "Evaluate a run's newest checkpoint, or a model folder, on questions."),
    "data": ("data.command:show", "Show what files of questions hold: llmtrain data FILE..."),
    "subset": ("data.command:subset", "Write some questions of a file, at random or by clusters."),
    "score": (
        "verifiers.score:score",
        "Judge the responses of a file: llmtrain score --verifier math --in FILE --out FILE.",
    ),
    "law": ("study.law:law", "Fit R = −a·e^H + b to runs, predict their ends, and draw it."),
    "probe-entropy": (
        "study.probe_command:probe_entropy",
        "Compare estimators of the entropy change of tokens with the truth.",
    ),
    "plan": ("plan.command:plan", "Estimate memory, time and cost of a run without a GPU."),
    "bench": ("bench:bench", "Measure speed and memory: llmtrain bench kernels."),
    "doctor": ("doctor.command:doctor", "Try what works on this machine: torch, CUDA, NCCL, DeepSpeed, vLLM, Ray."),
    "launch": (
        "cluster.launch:launch",
        "Train on a Ray cluster that is running already: llmtrain launch --address URL train ...",
    ),
}
"""Where the other commands are, imported when they are called, and what they do."""


@one_line_errors
def main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        print(__doc__)
        about = {name: command.__doc__ for name, command in COMMANDS.items()} | {
            n: x for n, (_, x) in ELSEWHERE.items()
        }
        print("\n".join(f"  {name:14} {line}" for name, line in about.items()))
        return 0
    name, *rest = args
    if name in COMMANDS:
        return COMMANDS[name](rest)
    if name not in ELSEWHERE:
        raise ValueError(f"unknown command {name!r}; choose from {', '.join([*COMMANDS, *ELSEWHERE])}")
    module, function = ELSEWHERE[name][0].split(":")
    code: int = getattr(import_module(f"llmtrain.{module}"), function)(rest)
    return code


if __name__ == "__main__":
    sys.exit(main())
