"""llmtrain: train language models by RLVR under an entropy controller.

    llmtrain train --preset countdown-cpu --controller entropic --target 0.4
    llmtrain train --preset countdown-cpu --controller clip_higher+steer --set lambda_min=0.8
    llmtrain resume runs/countdown
    llmtrain train --recipe steer/qwen2.5-math-7b --shrink
    llmtrain train --preset math-cpu --data.train-files DAPO-Math-17k.parquet
    llmtrain eval runs/countdown
    llmtrain eval Qwen2.5-Math-7B --data aime24.parquet math500.parquet --settings steer
    llmtrain train --preset countdown-ray
    llmtrain compare runs/demo/grpo runs/demo/entropic --out compare.png
    llmtrain leaderboard --preset countdown-cpu --target 0.45 --seeds 2 --workers 2
    llmtrain sft --preset countdown-cpu --sft.steps 300

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

from .process.cores import wait_briefly
from .process.local_ranks import announce_end, is_first, is_worker
from .process.stop_signals import ending
from .process.text import signal_name

COMMANDS = {
    "train": "Train a policy by RLVR.",
    "recipes": "List published runs, show their settings with sources, fetch what they need.",
    "resume": "Continue a run from its newest checkpoint.",
    "sft": "Warm up a built model, or that of model.path, on examples or worked solutions.",
    "compare": "Compare runs: a table, and a figure of entropy, reward and pass@k.",
    "eval": "Evaluate a run's newest checkpoint, or a model folder, on questions.",
    "export": "Write the model of a run's checkpoint to a folder, with a model card for the Hub.",
    "data": "Summarise question files: llmtrain data FILE...",
    "subset": "Select questions from a file: at random, by clusters, or by a model's pass rate.",
    "model": "Write a trainable model folder from a GGUF file: llmtrain model smollm2-135m.",
    "start-entropy": "Measure the entropy of a model before training, as a target.",
    "score": "Judge the responses of a file: llmtrain score --verifier math --in FILE --out FILE.",
    "diagnose": "Tell what happened to the entropy of runs, and what to try, with evidence.",
    "law": "Fit R = −a·e^H + b to runs, predict their ends, and draw it.",
    "probe-entropy": "Compare estimators of the entropy change of tokens with the truth.",
    "claims": "Check claims of the papers in a language model, beside the bandit's verdicts.",
    "leaderboard": "Train under every controller and rank them.",
    "demo": "Warm up a small model and train it under three controllers; draw runs/demo/entropy.png.",
    "plan": "Estimate memory, time and cost of a run without a GPU.",
    "bench": "Measure speed and memory: llmtrain bench kernels.",
    "doctor": "Check this machine: torch, CUDA, NCCL, DeepSpeed, vLLM, Ray.",
    "first-hour": "Test all parts of training on this machine: llmtrain first-hour --out report.json.",
    "launch": "Train on a running Ray cluster: llmtrain launch --address URL train ...",
}
"""Commands with their one-line help; each is `main` in the file of the same name in commands/."""

AT_WORK = {"train", "resume", "sft", "eval", "probe-entropy", "claims", "leaderboard", "demo", "first-hour"}
"""Commands that keep the processor busy."""


@one_line_errors
def command(args: list[str]) -> int:
    """Run one command; return its exit code."""
    if not args or args[0] in ("-h", "--help"):
        print(__doc__)
        print("\n".join(f"  {name:14} {line}" for name, line in COMMANDS.items()))
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
    """Run a command line; return its exit code. The process of a rank ends here with that code."""
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
