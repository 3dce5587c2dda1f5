"""llmtrain: train language models by RLVR under an entropy controller.

    llmtrain train --preset countdown-cpu --controller entropic --target 0.4
    llmtrain train --preset countdown-cpu --controller clip_higher+steer --set lambda_min=0.8
    llmtrain resume runs/countdown
    llmtrain train --recipe steer/qwen2.5-math-7b --shrink
    llmtrain train --preset math-cpu --data.train-files DAPO-Math-17k.parquet
    llmtrain eval Qwen2.5-Math-7B --data aime24.parquet math500.parquet --settings steer
    llmtrain compare runs/demo/grpo runs/demo/entropic --out compare.png

Settings of train: defaults < --preset < --config file.yaml < flags. `llmtrain COMMAND --help` lists the flags.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from entrostat import __version__
from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import one_line_errors
from entrostat.settings.commandline_help import overview

from .process.cores import wait_briefly
from .process.heap import keep_freed_memory
from .process.local_ranks import announce_end, is_first, is_worker
from .process.stop_signals import ending
from .process.text import signal_name

GROUPS = {
    "Train": {
        "train": "Train a policy by RLVR.",
        "resume": "Continue a run from its newest checkpoint.",
        "sft": "Warm up a model on examples or worked solutions.",
        "recipes": "List published runs, and fetch what they need.",
        "demo": "Train under three controllers, and draw their entropies.",
        "leaderboard": "Train under every controller and rank them.",
        "launch": "Train on a running Ray cluster.",
    },
    "Look at runs": {
        "compare": "Compare runs in a table and a figure.",
        "diagnose": "Tell what happened to the entropy of runs, and what to try.",
        "law": "Fit R = −a·e^H + b to runs, predict their ends, and draw it.",
        "probe-entropy": "Compare estimators of tokens' entropy change with the truth.",
        "claims": "Check the papers' claims in a language model.",
    },
    "Models and questions": {
        "eval": "Evaluate a run's newest checkpoint, or a model, on questions.",
        "score": "Judge the responses of a file.",
        "start-entropy": "Measure the entropy of a model before training.",
        "export": "Write the model of a checkpoint to a folder.",
        "model": "Write a trainable model folder from a GGUF file.",
        "data": "Summarise question files.",
        "subset": "Select questions: at random, by clusters or by pass rate.",
    },
    "Machines": {
        "plan": "Estimate memory, time and cost of a run without a GPU.",
        "doctor": "Check this machine: torch, CUDA, NCCL, DeepSpeed, vLLM, Ray.",
        "first-hour": "Test all parts of training on this machine.",
        "bench": "Measure speed and memory.",
    },
}
"""Commands by group, with their one-line help; each is `main` in the file of the same name in commands/."""
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}
"""All commands."""

AT_WORK = {"train", "resume", "sft", "eval", "probe-entropy", "claims", "leaderboard", "demo", "first-hour"}
"""Commands that keep the processor busy."""


@one_line_errors
def command(args: list[str]) -> int:
    """Run one command; return its exit code."""
    if not args or args[0] in ("-h", "--help"):
        print(overview("llmtrain", __doc__ or "", GROUPS))
        return 0
    if args[0] == "--version":
        print(f"llmtrain {__version__}")
        return 0
    name, *rest = args
    if name not in COMMANDS:
        raise ValueError(unknown("command", name, COMMANDS))
    if name in AT_WORK:
        wait_briefly()
    module = import_module(f"llmtrain.commands.{name.replace('-', '_')}")
    try:
        code: int = module.main(rest)
    except KeyboardInterrupt:
        if is_first():
            raise  # the others leave it to this one to say so
        return 130
    return code


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit code. The process of a rank ends here with that code.

    args: None takes the command line of this process, which is then a program of its own and keeps freed memory.
    """
    if args is None:
        keep_freed_memory()
    with ending(_say_end):
        if not is_worker():
            return command(args)
        try:
            code = command(args)
        except Exception:
            traceback.print_exc()
            code = 1
    announce_end()
    from .process.ranks import leave

    leave(code)
    return code


def _say_end(number: int) -> None:
    """Say that a signal ends the process, which is not in a training step."""
    if is_first():
        os.write(2, f"stopped by {signal_name(number)}, not in a training step\n".encode())
    if is_worker():
        announce_end()


if __name__ == "__main__":
    sys.exit(main())
