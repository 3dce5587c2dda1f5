"""What `llmtrain eval` is told, and what it means: which model, how questions are put, how they are sampled."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from entrostat.commandline import Arguments

from ..config import DataConfig, TrainConfig
from ..presets import get_preset
from ..run import run_config
from .settings import PRESETS, Sampling

ABOUT = """\
Evaluate the newest checkpoint of a run, or a model folder.

  llmtrain eval runs/x                                             the held-out questions of the run
  llmtrain eval runs/x --data amc23.parquet math500.parquet        files: parquet, jsonl, folders, hub names
  llmtrain eval Qwen2.5-Math-7B --data aime24.parquet --settings steer --rollout vllm \\
      --device cuda --dtype bfloat16
  llmtrain eval runs/x --data amc23.parquet --temperature 0.6 --top-p 0.95 --samples 32 --k 8 32
  llmtrain eval runs/x --data amc23.parquet --limit 4 --samples 2 --max-new-tokens 64         a quick try

Each benchmark is sampled as --settings says, with what the flags say instead; without --settings as the run evaluates:
"""
AFTER = """\
In --out: responses.jsonl (a line a response, as they come), results.json, results.md (avg@n, pass@k and maj@k with
intervals, length, entropy of responses and prompts, diversity, calibration, covariance by difficulty) and figures.
Ctrl-C loses at most a batch: the same command goes on where it stopped.
"""
FIELDS = ("temperature", "top_p", "samples", "max_new_tokens")
DATA_FIELDS = ("prompt_key", "answer_key", "system_prompt", "instruction", "chat_template", "max_prompt_length")


@dataclass(frozen=True)
class Place:
    """What PATH means."""

    config: TrainConfig
    model: Path
    out: Path
    """Where the results go unless --out says otherwise."""
    run: Path | None
    """The run, when it is one."""


def parser() -> Arguments:
    """Of the command line."""
    presets = "\n".join(f"  {name:20} {settings.source}" for name, settings in PRESETS.items())
    found = Arguments(
        prog="llmtrain eval",
        description=f"{ABOUT}\n{presets}",
        epilog=AFTER,
    )
    found.add_argument("path", help="a run, such as runs/countdown, or a model folder")
    what = found.add_argument_group("questions")
    what.add_argument("--data", nargs="+", metavar="FILE", help="benchmarks; without it the run's held-out questions")
    what.add_argument("--limit", type=int, default=0, metavar="Q", help="the first Q questions of each benchmark")
    what.add_argument("--verifier", help="who judges files: math, exact, regex, python, or module:function")
    what.add_argument("--prompt-key", help="column of the prompt")
    what.add_argument("--answer-key", help="column of the ground truth")
    what.add_argument("--skip-bad", action="store_true", help="leave out rows that cannot be read, and count them")
    what.add_argument("--system-prompt", help="said before prompts without a system message")
    what.add_argument("--instruction", help="said after each question")
    what.add_argument("--chat-template", metavar="FILE", help="Jinja template in place of the tokenizer's own")
    what.add_argument("--no-chat", action="store_true", help="give plain text to the model as it stands")
    what.add_argument("--max-prompt-length", type=int, metavar="N", help="leave out longer prompts (tokens)")
    how = found.add_argument_group("sampling")
    how.add_argument("--settings", choices=list(PRESETS), help="sample each benchmark as this paper does")
    how.add_argument("--samples", type=int, metavar="N", help="responses to each question")
    how.add_argument("--temperature", type=float, metavar="T", help="0 takes the most likely token")
    how.add_argument("--top-p", type=float, metavar="P", help="nucleus sampling below 1")
    how.add_argument("--max-new-tokens", type=int, metavar="N", help="longest response")
    how.add_argument("--seed", type=int, default=0)
    how.add_argument("--rollout", choices=("hf", "vllm"), default="hf", help="who samples: the model itself, or vLLM")
    out = found.add_argument_group("results")
    out.add_argument("--k", type=int, nargs="+", default=[], metavar="K", help="k of pass@k and maj@k in the table")
    out.add_argument(
        "--start", metavar="FOLDER", help="model before training, or the run, for the ratio of prompt entropies"
    )
    out.add_argument("--out", metavar="FOLDER", help="default: RUN/eval/..., or runs/eval-... for a model folder")
    out.add_argument("--overwrite", action="store_true", help="begin anew where --out holds an evaluation")
    where = found.add_argument_group("machine")
    where.add_argument("--device", help="cpu or cuda; that of the run by default")
    where.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights")
    where.add_argument("--nproc", type=int, default=1, metavar="N", help="processes that share the questions")
    where.add_argument("--batch-size", type=int, default=256, metavar="N", help="responses sampled together")
    where.add_argument("--preset", default="countdown-cpu", help="task and sampling when PATH is a model folder")
    return found


def locate(given: argparse.Namespace) -> Place:
    """What PATH means; ValueError when it is neither a run nor a model."""
    path = Path(given.path)
    label = f"-{given.settings}" if given.settings else ""
    if (path / "checkpoints").is_dir() and (path / "config.yaml").is_file():
        from ..checkpoint import latest

        model = latest(path)
        return Place(run_config(path), model, path / "eval" / f"{model.name}{label}", path)
    if not (path / "config.json").is_file():
        raise ValueError(f"{path} is neither a run with checkpoints nor a model folder")
    return Place(get_preset(given.preset), path, Path("runs") / f"eval-{path.resolve().name}{label}", None)


def data_config(given: argparse.Namespace, config: DataConfig) -> DataConfig:
    """How questions are read and put: the run's way, with what the flags say instead."""
    said = {name: getattr(given, name) for name in DATA_FIELDS if getattr(given, name) is not None}
    if given.data:
        said["val_files"] = tuple(given.data)
    if given.verifier:
        said["verifier"] = given.verifier
    as_chat, skip_bad = config.as_chat and not given.no_chat, config.skip_bad or given.skip_bad
    return replace(config, as_chat=as_chat, skip_bad=skip_bad, **said)


def sampler_settings(given: argparse.Namespace, config: TrainConfig) -> Callable[[str], Sampling]:
    """Source to sampling: that of --settings or of the run, with what the flags say instead."""
    said = {name: getattr(given, name) for name in FIELDS if getattr(given, name) is not None}
    own = Sampling(
        temperature=config.rollout.temperature,
        samples=config.eval.samples,
        max_new_tokens=config.rollout.max_new_tokens,
    )

    def of(source: str) -> Sampling:
        return replace(PRESETS[given.settings].of(source) if given.settings else own, **said)

    return of
