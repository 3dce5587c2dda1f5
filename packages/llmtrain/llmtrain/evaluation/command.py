"""llmtrain eval: a model on benchmarks, as the papers measure it."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from entrostat.commandline import OF_THE_DISK

from ..config import DataConfig, TrainConfig
from ..launch import end_with_parent, is_first, is_worker, launch
from ..run import claim
from .arguments import Place, data_config, locate, parser, sampler_settings

if TYPE_CHECKING:
    from ..ranks import Ranks
    from ..tasks import Task
    from .evaluation import Evaluation
    from .subject import Subject


def evaluate(args: list[str]) -> int:
    """Evaluate a run's newest checkpoint, or a model folder: llmtrain eval PATH [--data FILE ...]."""
    given = parser().parse_args(args)
    if given.nproc > 1 and not is_worker():
        return launch(["eval", *args], given.nproc)
    place = locate(given)
    from ..ranks import Ranks, join

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
        from .display import show

        show(records, evaluation.ks)
        print(f"done: {evaluation.out / 'results.md'}")
    return 0


def prepare(given: argparse.Namespace, place: Place) -> tuple["Evaluation", list[str]]:
    """The evaluation that the arguments describe, and what has to be told of it."""
    if given.limit < 0 or given.batch_size < 1 or any(k < 1 for k in given.k):
        raise ValueError("--limit must not be negative; --batch-size and --k must be positive")
    from ..prompts import use_template
    from .evaluation import Evaluation, benchmarks_of
    from .subject import Subject

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
    if given.rollout == "vllm":
        longest = max(len(ids) + one.sampling.max_new_tokens for one in benchmarks for ids in one.prompt_ids)
        subject = subject.with_vllm(place.model, longest)
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
    from ..tokenizer import load_tokenizer

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
    from ..run import run_config
    from ..warmup import cached_path

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

    from .correlations import over_run

    lines = read_metrics(run)
    return over_run(lines) if any(line.get("entropy") is not None for line in lines) else []
