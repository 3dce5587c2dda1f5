"""llmtrain: train language models by RLVR under an entropy controller.

    llmtrain train --preset countdown-cpu --controller entropic --target-entropy 0.4
    llmtrain train --preset countdown-cpu --controller clip_higher+steer --set lambda_min=0.8
    llmtrain resume runs/countdown
    llmtrain train --preset math-cpu --data.train-files DAPO-Math-17k.parquet
    llmtrain eval runs/countdown
    llmtrain eval Qwen2.5-Math-7B --data aime24.parquet math500.parquet --settings steer
    llmtrain train --preset countdown-ray
    llmtrain compare runs/demo/grpo runs/demo/entropic --out compare.png
    llmtrain leaderboard --preset countdown-cpu --target-entropy 0.45 --seeds 2 --workers 2
    llmtrain sft --preset countdown-cpu --sft.steps 300

Settings of train: defaults < --preset < --config file.yaml < flags. `llmtrain COMMAND --help` lists the flags.
"""

import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from entrostat import __version__
from entrostat.commandline import Arguments, one_line_errors

from .config import TrainConfig
from .launch import LostRankError, is_first, is_worker, launch
from .presets import read_config
from .run import LOCK, claim, prepare, run_config, say, train_run

REPLACED = ("config.yaml", "manifest.json", "metrics.jsonl", "samples.jsonl", "checkpoints", "tensorboard", "wandb_id")
"""What a new run replaces in its folder."""


def train(args: list[str]) -> int:
    """A new run; its exit code, as of all commands."""
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
    """The rest of a run, with its own settings."""
    from .check import check_machine
    from .checkpoint import latest, step_of

    parser = _parser("resume")
    parser.add_argument("run", help="folder of the run, such as runs/countdown")
    parser.add_argument("--steps", type=int, help="train to this rollout step instead of the configured one")
    parser.add_argument("--topology.address", dest="address", help="Ray cluster to go on in, HOST:PORT or auto")
    given = parser.parse_args(args)
    config = replace(run_config(given.run), out=str(Path(given.run)))
    if given.address is not None:
        if config.topology.name != "ray":
            raise ValueError(f"{given.run} was not trained on Ray but with topology.name {config.topology.name}")
        config = replace(config, topology=replace(config.topology, address=given.address))
    if given.steps is not None:
        done = step_of(latest(given.run))
        if given.steps < done:
            raise ValueError(f"--steps {given.steps}: {given.run} has done {done}; give {done} or more")
        config = replace(config, steps=given.steps)
    check_machine(config)
    return run(["resume", *args], config, resuming=True)


def run(command: list[str], config: TrainConfig, resuming: bool = False) -> int:
    """Train in this process, as ranks of this machine, which get the same command, or as actors of a Ray cluster.

    ValueError names the last checkpoint when a rank is lost.
    """
    from .checkpoint import last_saved

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
        raise ValueError(f"{error}; {last_saved(config.out)}") from None


def sft(args: list[str]) -> int:
    """A supervised warm-up, with the settings of train."""
    example = "llmtrain sft --preset countdown-cpu --sft.steps 300 --out runs/base"
    config = read_config(args, "llmtrain sft", example, out="runs/sft")
    from .check import check_sft

    check_sft(config)
    there = any(path.name != LOCK for path in Path(config.out).glob("*"))
    if is_first() and there and not config.overwrite:
        raise ValueError(f"{config.out} exists: choose another --out or pass --overwrite")
    from .warmup import sft_run

    with claim(config.out):
        if config.nproc == 1 or is_worker():
            return sft_run(config)
    return launch(["sft", *args], config.nproc)


def compare(args: list[str]) -> int:
    """Runs side by side."""
    parser = _parser("compare")
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--out", default="compare.png", help="figure to write (.png, .svg or .pdf)")
    given = parser.parse_args(args)
    from rich.console import Console

    from .compare import Run, figure, picture, table

    runs = [Run.read(path) for path in given.runs]
    out = picture(given.out)
    figure(runs, out)
    Console().print(table(runs))
    print(f"figure: {out}")
    return 0


def _parser(command: str) -> Arguments:
    return Arguments(prog=f"llmtrain {command}", description=COMMANDS[command][1])


COMMANDS = {
    "train": ("cli:train", "Train a policy by RLVR."),
    "resume": ("cli:resume", "Continue a run from its newest checkpoint."),
    "sft": ("cli:sft", "Warm a model up on examples or worked solutions: a built one, or that of model.path."),
    "compare": ("cli:compare", "Compare runs: a table, and a figure of entropy, reward and pass@k."),
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
    "leaderboard": ("leaderboard.command:leaderboard", "Train under every controller and rank them."),
    "plan": ("plan.command:plan", "Estimate memory, time and cost of a run without a GPU."),
    "bench": ("bench:bench", "Measure speed and memory: llmtrain bench kernels."),
    "doctor": ("doctor.command:doctor", "Try what works on this machine: torch, CUDA, NCCL, DeepSpeed, vLLM, Ray."),
    "first-hour": (
        "first_hour.hour:first_hour",
        "Try all of training on this machine, predicted against measured: llmtrain first-hour --out report.json.",
    ),
    "launch": (
        "cluster.launch:launch",
        "Train on a Ray cluster that is running already: llmtrain launch --address URL train ...",
    ),
}
"""Where each command is, imported when it is called, and what it does."""


@one_line_errors
def command(args: list[str]) -> int:
    """One command; its exit code."""
    if not args or args[0] in ("-h", "--help"):
        print(__doc__)
        print("\n".join(f"  {name:14} {line}" for name, (_, line) in COMMANDS.items()))
        return 0
    if args[0] == "--version":
        print(f"llmtrain {__version__}")
        return 0
    name, *rest = args
    if name not in COMMANDS:
        raise ValueError(f"unknown command {name!r}; choose from {', '.join(COMMANDS)}")
    module, function = COMMANDS[name][0].split(":")
    try:
        code: int = getattr(import_module(f"llmtrain.{module}"), function)(rest)
    except KeyboardInterrupt:
        if is_first():
            raise  # the others leave it to this one to say so
        return 130
    return code


def main(args: Sequence[str] | None = None) -> int:
    """The command line; exit code, with which the process of a rank ends here, however the command did."""
    if not is_worker():
        return command(args)
    try:
        code = command(args)
    except Exception:
        traceback.print_exc()
        code = 1
    from .ranks import leave

    leave(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
