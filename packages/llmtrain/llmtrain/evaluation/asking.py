"""Responses of a model to questions of a file, for commands that choose questions or measure a model by them.

    questions ► prompts as in training ► Evaluation.sampled ► responses.jsonl ► lines of each question

An interrupted command continues where it stopped, like `llmtrain eval`.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data import Question
from ..data.prompts import put, use_template
from ..settings.config import DataConfig
from ..settings.sampling import Sampling
from ..verifiers import get_verifier
from ..verifiers.by_source import Named
from .benchmark import by_question
from .evaluation import Evaluation, benchmarks_of
from .subject import Subject

ALL = "all"
"""Source under which the questions of all sources are asked together."""


def ask(
    model: Path, questions: Sequence[Question], given: argparse.Namespace, out: Path
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the index of each question and the lines of its responses, see `answers`; skipped ones are left out.

    model: model folder. given: the flags of `asking_flags`, and `seed`. out: folder of the responses.
    Raises ValueError for verifiers by source, and if `out` holds the responses of other settings.
    """
    if Named.of(given.verifier).by_source:
        raise ValueError("verifiers by source are for training and eval: name one here, and its rows with --keep")
    if not (model / "config.json").is_file():
        raise ValueError(f"{model} is not a model folder: it has no config.json")
    sampling = Sampling(
        temperature=given.temperature, top_p=given.top_p, samples=given.samples, max_new_tokens=given.max_new_tokens
    )
    said = {name: getattr(given, name) for name in ("system_prompt", "instruction", "chat_template")}
    data = DataConfig(as_chat=not given.no_chat, **said)
    asked = [replace(put(question, data), source=ALL, where=str(i)) for i, question in enumerate(questions)]
    subject = Subject.load(model, device=given.device, dtype=given.dtype)
    use_template(subject.tokenizer, data)
    benchmarks, left_out = benchmarks_of(
        subject, asked, lambda source: sampling, max_prompt_length=given.max_prompt_length
    )
    for line in left_out:
        print(line.removeprefix(f"{ALL}: "))
    if given.rollout != subject.rollout:
        longest = max(map(len, benchmarks[0].prompt_ids)) + sampling.max_new_tokens
        subject = subject.sampled_by(given.rollout, model, longest)
    evaluation = Evaluation(
        subject=subject,
        path=model,
        benchmarks=benchmarks,
        verifier=given.verifier,
        start_verifier=lambda: get_verifier(given.verifier, answer_after=given.answer_after),
        answer_after=given.answer_after,
        out=out,
        sequences=given.batch_size,
        seed=given.seed,
    )
    for lines in by_question(evaluation.sampled(overwrite=given.overwrite)):
        yield int(benchmarks[0].questions[lines[0]["question"]].where), lines
