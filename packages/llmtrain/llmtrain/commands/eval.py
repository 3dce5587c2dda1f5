"""llmtrain eval: evaluation of a model on benchmarks, as in the papers."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entrostat.settings.commandline import OF_THE_DISK, Arguments

from ..evaluation.paper_settings import PRESETS, in_training
from ..process.local_ranks import end_with_parent, is_first, is_worker, launch
from ..settings.config import DataConfig, TrainConfig
from ..settings.presets import get_preset
from ..settings.sampling import Sampling
from ..training.run import claim, run_config, tell_own_names
from ..verifiers.verifier_registry import named_verifiers

if TYPE_CHECKING:
    from ..evaluation.evaluation import Evaluation
    from ..evaluation.subject import Subject
    from ..process.ranks import Ranks
    from ..tasks import Task

ABOUT = """\
Evaluate the newest checkpoint of a run, or a model folder.

  llmtrain eval runs/x                                             the held-out questions of the run
  llmtrain eval runs/x --best eval/avg@8                           its best checkpoint instead of the newest
  llmtrain eval runs/x --data amc23.parquet math500.parquet        files: parquet, jsonl, folders, hub names
  llmtrain eval Qwen2.5-Math-7B --data aime24.parquet --settings steer --rollout vllm \\
      --device cuda --dtype bfloat16
  llmtrain eval runs/x --data amc23.parquet --temperature 0.6 --top-p 0.95 --samples 32 --k 8 32
  llmtrain eval runs/x --data amc23.parquet --limit 4 --samples 2 --max-new-tokens 64         a quick try
  llmtrain eval runs/x --data aime24.parquet livecodebench ifeval --verifier "math livecodebench=python ifeval=ifeval"

--settings sets the sampling of each benchmark (default: as in the run); flags override it:
"""
AFTER = """\
--out receives responses.jsonl (one line per response, written during sampling), results.json, results.md (avg@n, pass@k
and maj@k with intervals, length, entropy of responses and prompts, diversity, calibration, covariance by difficulty)
and figures. Ctrl-C loses at most one batch: rerun the same command to resume.
"""
FIELDS = ("temperature", "top_p", "samples", "max_new_tokens")
DATA_FIELDS = (
    "prompt_key",
    "answer_key",
    "source_key",
    "system_prompt",
    "instruction",
    "answer_after",
    "chat_template",
    "max_prompt_length",
)


@dataclass(frozen=True)
class Place:
    """Run or model folder that PATH names."""

    config: TrainConfig
    model: Path
    out: Path
    """Default folder of the results."""
    run: Path | None
    """Folder of the run; None for a model folder."""


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
            print(f"stopped; rerun the same command to resume {evaluation.out}", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in OF_THE_DISK:
            raise
        raise ValueError(
            f"{evaluation.out}: {error.strerror}; fix this, then rerun the same command to resume"
        ) from None
    if records:
        from ..evaluation.eval_progress import show

        show(records, evaluation.ks)
        print(f"done: {evaluation.out / 'results.md'}")
    return 0


def prepare(given: argparse.Namespace, place: Place) -> tuple["Evaluation", list[str]]:
    """Return the evaluation for the arguments, and messages about skipped questions."""
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
    device, trusted = given.device or config.device, given.trust_remote_code
    machine = {"device": device, "dtype": given.dtype, "trust_remote_code": trusted}
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
        answer_after=data.answer_after,
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


def _start(given: argparse.Namespace, subject: "Subject", machine: dict[str, Any]) -> Callable[[], "Subject"] | None:
    """Return a loader of the start model, or None. Raises ValueError if its tokenizer differs from the subject's."""
    if given.start is None:
        return None
    from ..policy.tokenizer import load_tokenizer

    folder = _first_model(Path(given.start))
    if not (folder / "config.json").is_file():
        raise ValueError(f"--start {given.start} is not a model folder: there is no {folder / 'config.json'}")
    if load_tokenizer(folder, machine["trust_remote_code"]).get_vocab() != subject.tokenizer.get_vocab():
        raise ValueError(f"--start {given.start} has another tokenizer: entropies of prompts cannot be compared")
    return lambda: type(subject).load(folder, **machine)


def _first_model(folder: Path) -> Path:
    """Return the start model of a run, or `folder` itself if it is not a run."""
    if not (folder / "config.yaml").is_file():
        return folder
    from ..training.warmup import cached_path

    config = run_config(folder)
    return Path(config.model.path) if config.model.path else cached_path(config)


def _task(data: DataConfig, config: TrainConfig) -> tuple["Task", str]:
    """Return the task whose held-out questions are evaluated, and the name of its verifier."""
    from ..tasks import get_task, question_task

    if data.val_files:
        return question_task(replace(data, train_files=(), weights=(), keep=())), data.verifier
    if data.train_files:
        raise ValueError("the run has no data.val_files to evaluate on: name files with --data")
    return get_task(config), config.task.name


def _correlations(run: Path | None) -> list:
    """Return correlations of entropy and scores over the run's own evaluations; empty if it logged no entropy."""
    if run is None:
        return []
    from entrostat.logs.runlog import read_metrics

    from ..evaluation.correlations import over_run

    lines = read_metrics(run)
    return over_run(lines) if any(line.get("entropy") is not None for line in lines) else []


# Arguments ----------------------------------------------------------------------------------------------------------


def parser() -> Arguments:
    """Return the command-line parser."""
    presets = "\n".join(f"  {name:20} {settings.source}" for name, settings in PRESETS.items())
    found = Arguments(
        prog="llmtrain eval",
        description=f"{ABOUT}\n{presets}",
        epilog=AFTER,
    )
    found.add_argument("path", help="a run, such as runs/countdown, or a model folder")
    found.add_argument(
        "--best",
        nargs="?",
        const="",
        metavar="METRIC",
        help="the run's checkpoint with the highest METRIC, default checkpoint.keep_best, instead of the newest",
    )
    what = found.add_argument_group("questions")
    what.add_argument("--data", nargs="+", metavar="FILE", help="benchmarks; without it the run's held-out questions")
    what.add_argument("--limit", type=int, default=0, metavar="Q", help="the first Q questions of each benchmark")
    what.add_argument(
        "--verifier",
        help="verifier for files: math, exact, regex, python, ifeval, a plug-in's, or module:function; others "
        "for single sources follow it, as in 'math livecodebench=python ifeval=ifeval'",
    )
    what.add_argument("--prompt-key", help="column of the prompt")
    what.add_argument("--answer-key", help="column of the ground truth")
    what.add_argument("--source-key", help="column by which results are told apart, such as level")
    what.add_argument("--skip-bad", action="store_true", help="skip and count rows that cannot be read")
    what.add_argument("--system-prompt", help="system message for prompts without one")
    what.add_argument("--instruction", help="text added after each question")
    what.add_argument("--answer-after", metavar="MARK", help='mark before an answer, such as "</think>"')
    what.add_argument("--chat-template", metavar="FILE", help="Jinja template instead of the tokenizer's own")
    what.add_argument("--no-chat", action="store_true", help="pass plain-text prompts without a chat template")
    what.add_argument("--max-prompt-length", type=int, metavar="N", help="skip longer prompts (tokens)")
    how = found.add_argument_group("sampling")
    how.add_argument("--settings", choices=list(PRESETS), help="sample each benchmark as in this paper")
    how.add_argument("--samples", type=int, metavar="N", help="responses to each question")
    how.add_argument("--temperature", type=float, metavar="T", help="0 takes the most likely token")
    how.add_argument("--top-p", type=float, metavar="P", help="nucleus sampling below 1")
    how.add_argument("--max-new-tokens", type=int, metavar="N", help="upper limit for response tokens")
    how.add_argument("--seed", type=int, default=0)
    how.add_argument("--rollout", default="hf", help="engine: hf (transformers), vllm, a plug-in's, or module:Class")
    out = found.add_argument_group("results")
    out.add_argument("--k", type=int, nargs="+", default=[], metavar="K", help="k of pass@k and maj@k in the table")
    out.add_argument(
        "--start", metavar="FOLDER", help="model before training, or its run, for the ratio of prompt entropies"
    )
    out.add_argument("--out", metavar="FOLDER", help="default: RUN/eval/..., or runs/eval-... for a model folder")
    out.add_argument("--overwrite", action="store_true", help="start over if --out contains an evaluation")
    where = found.add_argument_group("machine")
    where.add_argument("--device", help="cpu or cuda; the run's device by default")
    where.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="dtype of the weights")
    where.add_argument("--trust-remote-code", action="store_true", help="run Python code in the model folder")
    where.add_argument("--nproc", type=int, default=1, metavar="N", help="processes that share the questions")
    where.add_argument("--batch-size", type=int, default=256, metavar="N", help="responses sampled together")
    where.add_argument("--preset", default="countdown-cpu", help="task and sampling if PATH is a model folder")
    return found


def locate(given: argparse.Namespace) -> Place:
    """Return the run or model folder that PATH names. Raises ValueError if it is neither."""
    path = Path(given.path)
    label = f"-{given.settings}" if given.settings else ""
    if (path / "checkpoints").is_dir() and (path / "config.yaml").is_file():
        from ..policy.checkpoint import check_unaltered

        config = run_config(path, given.trust_remote_code)
        tell_own_names(config)
        model = _checkpoint(path, given.best, config)
        check_unaltered(model)
        return Place(config, model, path / "eval" / f"{model.name}{label}", path)
    if given.best is not None:
        raise ValueError(f"--best chooses among the checkpoints of a run, and {path} is none")
    if not (path / "config.json").is_file():
        raise ValueError(f"{path} is neither a run with checkpoints nor a model folder")
    return Place(get_preset(given.preset), path, Path("runs") / f"eval-{path.resolve().name}{label}", None)


def _checkpoint(run: Path, metric: str | None, config: TrainConfig) -> Path:
    """Return the newest checkpoint of a run, or the best by a metric; "" is the run's checkpoint.keep_best."""
    from ..policy.checkpoint import latest
    from ..policy.retention import best

    if metric is None:
        return latest(run)
    if not (metric or config.checkpoint.keep_best):
        raise ValueError(f"--best needs a metric, such as eval/avg@{config.eval.k}: {run} has no checkpoint.keep_best")
    return best(run, metric or config.checkpoint.keep_best)


def data_config(given: argparse.Namespace, config: DataConfig) -> DataConfig:
    """Return the run's settings for questions, overridden by the flags."""
    said = {name: getattr(given, name) for name in DATA_FIELDS if getattr(given, name) is not None}
    if given.data:
        said["val_files"] = tuple(given.data)
    if given.verifier:
        named_verifiers(given.verifier)
        said["verifier"] = given.verifier
    as_chat, skip_bad = config.as_chat and not given.no_chat, config.skip_bad or given.skip_bad
    return replace(config, as_chat=as_chat, skip_bad=skip_bad, **said)


def sampler_settings(given: argparse.Namespace, config: TrainConfig) -> Callable[[str], Sampling]:
    """Return a function from source to sampling: by --settings or as in the run, overridden by the flags."""
    said = {name: getattr(given, name) for name in FIELDS if getattr(given, name) is not None}
    named = PRESETS[given.settings].of if given.settings else in_training(config)

    def of(source: str) -> Sampling:
        return replace(named(source), **said)

    return of
