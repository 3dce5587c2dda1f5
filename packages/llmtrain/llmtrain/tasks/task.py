"""A task: questions to train on, others held out, and the verifier that tells right responses from wrong ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..data import Mixture, Prompt, Question
from ..settings.config import SFTConfig
from ..verifiers import Verifier
from ..verifiers.verdict import Verdict

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Examples = list[tuple[Prompt, str]]


@dataclass(frozen=True)
class Task:
    """What training and evaluation need to know of a task."""

    train: Sequence[Sequence[Question]]
    """By source; they are mixed by `weights`."""
    test: Sequence[Question]
    start_verifier: Callable[[], Verifier]
    """Starts the judge of responses."""
    examples_of: Callable[[Sequence[Sequence[Question]], SFTConfig], Examples]
    """Prompts and responses for the supervised warm-up, from the questions to train on."""
    build_tokenizer: Callable[[int], "PreTrainedTokenizerFast"]
    """Of a model that is built for this task, from the most tokens that it may have."""
    weights: tuple[float, ...] = ()
    """Of the sources; none takes every question once an epoch."""
    skipped: tuple[str, ...] = ()
    """What was left out on the way, and why, a line each."""

    def examples(self, sft: SFTConfig) -> Examples:
        """Prompts and responses for the supervised warm-up."""
        return self.examples_of(self.train, sft)

    @cached_property
    def order(self) -> Mixture:
        return Mixture([len(source) for source in self.train], self.weights or None)

    def epoch(self, step: int, prompts: int) -> int:
        """Pass over the training questions, from 1, in which step `step` begins."""
        return self.order.epoch(step * prompts)

    def train_batch(self, step: int, prompts: int, seed: int) -> list[Question]:
        """The questions of a step: each pass over the data has an order of its own, drawn from the seed."""
        return [self.train[source][i] for source, i in self.order.take(step * prompts, prompts, seed)]

    @cached_property
    def verifier(self) -> Verifier:
        """Started when it is first asked for."""
        return self.start_verifier()

    def verify(self, questions: Sequence[Question], responses: Sequence[str]) -> list[Verdict]:
        """A verdict on each response to the question beside it."""
        return self.verifier(responses, [question.ground_truth for question in questions])

    def close(self) -> None:
        """End the verifier's processes."""
        if "verifier" in self.__dict__:
            self.verifier.close()

    def keep(self, fits: Callable[[Sequence[Question]], list[Question]], why: str) -> "Task":
        """The task with only those questions that `fits` leaves; what is left out is told under `skipped`.

        Raises:
            ValueError: when nothing is left to train on.
        """
        train, test = [fits(source) for source in self.train], fits(self.test)
        told = list(self.skipped)
        for name, before, after in (
            ("training", sum(map(len, self.train)), sum(map(len, train))),
            ("held-out", len(self.test), len(test)),
        ):
            if after < before:
                told.append(f"{before - after:,} of {before:,} {name} questions left out: {why}")
        if not all(train):
            raise ValueError(f"no training question is left: {told[-1] if told else 'there was none'}")
        return replace(self, train=train, test=test, skipped=tuple(told))
