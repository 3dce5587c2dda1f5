"""Task with questions from files."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..data import Question, labels, read
from ..data.prompts import put
from ..data.row_filter import RowFilter
from ..settings.config import DataConfig, SFTConfig
from ..verifiers import Verifier, get_verifier
from ..verifiers.math.truths import usable
from .task import Examples, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LEARN_FROM = 20_000
"""Upper limit for texts that a tokenizer learns its byte pairs from."""


def question_task(config: DataConfig, keep_columns: bool = False) -> Task:
    """Return a task that trains on questions of `config.train_files` and evaluates on `config.val_files`.

    keep_columns: keep all columns of training questions, for a reward function.

    Raises:
        ValueError: for a file that cannot be read, with its row and column.
    """
    told: list[str] = []
    keep = RowFilter(config.keep)
    train = _read(config.train_files, config, "train", told, keep, keep_columns)
    keep.check()
    test = [question for source in _read(config.val_files, config, "test", told) for question in source]

    def examples(asked: Sequence[Sequence[Question]], sft: SFTConfig) -> Examples:
        solved = [(q.prompt, q.solution) for source in asked for q in source if q.solution]
        if not solved:
            raise ValueError(
                f"none of {', '.join(config.train_files)} has worked solutions for the warm-up: set model.path to a "
                "trained model, or sft.steps to 0"
            )
        return solved[: sft.examples]

    def tokenizer(vocab_size: int) -> "PreTrainedTokenizerFast":
        from ..policy.tokenizer import build_bpe_tokenizer

        texts = (text for source in train for question in source for text in _texts(question))
        return build_bpe_tokenizer(islice(texts, LEARN_FROM), vocab_size)

    def verifier() -> Verifier:
        return get_verifier(
            config.verifier,
            workers=config.verifier_workers,
            timeout=config.verifier_timeout,
            answer_after=config.answer_after,
        )

    return Task(train, test, verifier, examples, tokenizer, config.weights, tuple(told))


def _read(
    names: Sequence[str],
    config: DataConfig,
    split: str,
    told: list[str],
    keep: RowFilter | None = None,
    keep_columns: bool = False,
) -> list[list[Question]]:
    keys = {
        "prompt_key": config.prompt_key,
        "answer_key": config.answer_key,
        "source_key": config.source_key,
        "skip_bad": config.skip_bad,
        "keep_columns": keep_columns,
        "choice_seed": config.choice_seed,
    }
    found, keep = [], keep or RowFilter()
    for name, label in zip(names, labels(names, split), strict=True):
        before = keep.dropped
        questions, skipped = read(name, split=split, usable=usable(config.verifier), keep=keep, label=label, **keys)  # type: ignore[arg-type]
        if dropped := keep.dropped - before:
            told.append(f"left out {dropped:,} rows of {name}: data.keep is {keep}")
        if skipped:
            told.append(f"skipped {len(skipped)} bad rows of {name} (the first: {skipped[0]})")
        found.append([put(question, config) for question in questions])
    return found


def _texts(question: Question) -> list[str]:
    prompt = question.prompt
    said = [prompt] if isinstance(prompt, str) else [message["content"] for message in prompt]
    return [*said, question.solution] if question.solution else said
