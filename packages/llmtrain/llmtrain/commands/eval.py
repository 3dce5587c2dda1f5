"""llmtrain eval: a model on benchmarks, as the papers measure it."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from entrostat.commandline import OF_THE_DISK, Arguments

from ..evaluation.paper_settings import PRESETS
from ..process.local_ranks import end_with_parent, is_first, is_worker, launch
from ..settings.config import DataConfig, TrainConfig
from ..settings.presets import get_preset
from ..settings.sampling import Sampling
from ..training.run import claim, run_config

if TYPE_CHECKING:
    from ..evaluation.evaluation import Evaluation
    from ..evaluation.subject import Subject
    from ..process.ranks import Ranks
    from ..tasks import Task

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


def main(args: list[str]) -> int:
    """Evaluate a run's newest checkpoint, or a model folder: llmtrain eval PATH [--data FILE ...]."""
    given = parser().parse_args(args)
    if given.nproc > 1 and not is_worker():
        return launch(["eval", *args], given.nproc)
    place = locate(given)
    from ..process.ranks import Ranks, join

    end_with_parent()
    return _evaluate(given, place, join(given.device or place.config.device) if is_worker() else Ranks())


def _evaluate(given: argparse.Namespace, place: Place, ranks: "Ranks") -> int:
    evaluation, told = prepare(given, place)
    if is_first():
        for line in told:
            print(line, file=sys.stderr)
    try:
        with claim(str(evaluation.out), "evaluates"):
            records = evaluation.run(ranks, given.overwrite)
    except KeyboardInterrupt:
        if is_first():
            print(f"stopped; the same command goes on with {evaluation.out}", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in OF_THE_DISK:
            raise
        raise ValueError(f"{evaluation.out}: {error.strerror}; once that is mended the same command goes on") from None
    if records:
        from ..evaluation.eval_progress import show

        show(records, evaluation.ks)
        print(f"done: {evaluation.out / 'results.md'}")
    return 0


def prepare(given: argparse.Namespace, place: Place) -> tuple["Evaluation", list[str]]:
    """The evaluation that the arguments describe, and what has to be told of it."""
    if given.limit < 0 or given.batch_size < 1 or any(k < 1 for k in given.k):
        raise ValueError("--limit must not be negative; --batch-size and --k must be positive")
    from ..data.prompts import use_template
    from ..evaluation.evaluation import Evaluation, benchmarks_of
    from ..evaluation.subject import Subject

    data, config = data_config(given, place.config.data), place.config
    if given.verifier and not data.val_files:
        raise ValueError("--verifier judges questions from files: name them with --data")
    sampling_of = sampler_settings(given, config)
    task, verifier = _task(data, config)
    machine = {"device": given.device or config.device, "dtype": given.dtype}
    subject = Subject.load(place.model, stop_token_ids=tuple(config.rollout.stop_token_ids), **machine)
    use_template(subject.tokenizer, data)
    benchmarks, left_out = benchmarks_of(
        subject, task.test, sampling_of, max_prompt_length=data.max_prompt_length, limit=given.limit
    )
    if given.rollout != subject.rollout:
        longest = max(len(ids) + one.sampling.max_new_tokens for one in benchmarks for ids in one.prompt_ids)
        subject = subject.sampled_by(given.rollout, place.model, longest)
    evaluation = Evaluation(
        subject=subject,
        path=place.model,
        benchmarks=benchmarks,
        verifier=verifier,
        start_verifier=task.start_verifier,
        timeout=data.verifier_timeout if data.val_files else 0.0,
        out=Path(given.out) if given.out else place.out,
        sequences=given.batch_size,
        seed=given.seed,
        start=_start(given, subject, machine),
        ks=tuple(sorted(set(given.k))),
        correlations=_correlations(place.run),
    )
    return evaluation, [*task.skipped, *left_out]


def _start(given: argparse.Namespace, subject: "Subject", machine: dict[str, str]) -> Callable[[], "Subject"] | None:
    """What loads the model before training, if there is one; ValueError unless it reads prompts as this one does."""
    if given.start is None:
        return None
    from ..policy.tokenizer import load_tokenizer

    folder = _first_model(Path(given.start))
    if not (folder / "config.json").is_file():
        raise ValueError(f"--start {given.start} is not a model folder: there is no {folder / 'config.json'}")
    if load_tokenizer(folder).get_vocab() != subject.tokenizer.get_vocab():
        raise ValueError(f"--start {given.start} has another tokenizer: entropies of prompts cannot be compared")
    return lambda: type(subject).load(folder, **machine)


def _first_model(folder: Path) -> Path:
    """The model that a run began with; a folder that is no run is one."""
    if not (folder / "config.yaml").is_file():
        return folder
    from ..training.warmup import cached_path

    config = run_config(folder)
    return Path(config.model.path) if config.model.path else cached_path(config)


def _task(data: DataConfig, config: TrainConfig) -> tuple["Task", str]:
    """The task whose held-out questions are asked, and the name of its verifier."""
    from ..tasks import get_task, question_task

    if data.val_files:
        return question_task(replace(data, train_files=(), weights=())), data.verifier
    if data.train_files:
        raise ValueError("the run has no data.val_files to evaluate on: name files with --data")
    return get_task(config), config.task.name


def _correlations(run: Path | None) -> list:
    """Of entropy and scores over the run's own evaluations, where it has logged some."""
    if run is None:
        return []
    from entrostat.runlog import read_metrics

    from ..evaluation.correlations import over_run

    lines = read_metrics(run)
    return over_run(lines) if any(line.get("entropy") is not None for line in lines) else []


# Arguments ----------------------------------------------------------------------------------------------------------


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
    how.add_argument("--rollout", default="hf", help="who samples: hf (the model itself), vllm, or module:Class")
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
        from ..policy.checkpoint import latest

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
