"""Task: training questions, held-out questions, and the verifier of their responses."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..data import Mixture, Prompt, Question
from ..settings.config import SFTConfig
from ..verifiers import Verifier, judged
from ..verifiers.own_error import OwnError
from ..verifiers.reward_function import RewardFunction
from ..verifiers.verdict import Verdict

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Examples = list[tuple[Prompt, str]]


@dataclass(frozen=True)
class Task:
    """Questions, verifier and warm-up of a task, for training and evaluation."""

    train: Sequence[Sequence[Question]]
    """Training questions by source, mixed by `weights`."""
    test: Sequence[Question]
    """Held-out questions."""
    start_verifier: Callable[[], Verifier]
    """Function that starts the verifier."""
    examples_of: Callable[[Sequence[Sequence[Question]], SFTConfig], Examples]
    """Function from training questions to prompts and responses for the supervised warm-up."""
    build_tokenizer: Callable[[int], "PreTrainedTokenizerFast"]
    """Function from the vocabulary limit to a tokenizer, for a model built for this task."""
    weights: tuple[float, ...] = ()
    """Weights of the sources; empty draws every question once per epoch."""
    skipped: tuple[str, ...] = ()
    """Messages about skipped questions, with the reason, one line each."""
    start_reward: Callable[[], RewardFunction] | None = None
    """Function that starts the reward function's processes; None without one."""

    def examples(self, sft: SFTConfig) -> Examples:
        """Return prompts and responses for the supervised warm-up."""
        return self.examples_of(self.train, sft)

    @cached_property
    def order(self) -> Mixture:
        return Mixture([len(source) for source in self.train], self.weights or None)

    def epoch(self, step: int, prompts: int) -> int:
        """Return the pass over the training questions, from 1, in which step `step` begins."""
        return self.order.epoch(step * prompts)

    def train_batch(self, step: int, prompts: int, seed: int) -> list[Question]:
        """Return the questions of a step; each pass over the data has its own order, drawn from the seed."""
        return self.questions_at(self.order.take(step * prompts, prompts, seed))

    def questions_at(self, places: Sequence[tuple[int, int]]) -> list[Question]:
        """Return the training questions at these places, (source, index within it) each."""
        return [self.train[source][i] for source, i in places]

    @cached_property
    def verifier(self) -> Verifier:
        """Verifier, started at first use."""
        return self.start_verifier()

    def verify(self, questions: Sequence[Question], responses: Sequence[str]) -> list[Verdict]:
        """Return the verdict on each response to its question."""
        return judged(self.verifier, questions, responses)

    @cached_property
    def reward(self) -> RewardFunction | None:
        """Reward function, started at first use; None without one."""
        return self.start_reward() if self.start_reward else None

    def score(self, questions: Sequence[Question], responses: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the reward function's numbers for the responses to each question."""
        assert self.reward
        groups = [
            {
                **question.columns,
                "prompt": question.prompt,
                "ground_truth": question.ground_truth,
                "data_source": question.source,
                "responses": list(some),
            }
            for question, some in zip(questions, responses, strict=True)
        ]
        return self.reward.score(groups)

    def try_out(self, n: int) -> None:
        """Call verifier and reward function once, on n copies of a training question's truth as its responses.

        Raises:
            ValueError: if one of them raises or ends its process.
        """
        question = next((question for source in self.train for question in source), None)
        if question is None:
            raise ValueError("the task has no training question")
        response = str(question.ground_truth)
        named = {"verifier": self.verifier} | ({"reward function": self.reward} if self.reward else {})
        reason = self.verify([question], [response])[0].reason
        if self.reward:
            self.score([question], [[response] * n])
        for name, called in named.items():
            kind = next((kind for kind in ("error", "crash", "timeout") if called.failures[kind]), None)
            if kind:
                told = called.errors[0].line if called.errors else reason or f"no answer within its limit ({kind})"
                raise ValueError(f"the {name} fails on the first training question: {told}")
            called.failures.clear()

    @property
    def failures(self) -> Counter[str]:
        """Checks and rewards without an answer so far, by kind."""
        return Counter(self.verifier.failures) + Counter(self.reward.failures if self.reward else {})

    @property
    def errors(self) -> list[OwnError]:
        """First error that the verifier or the reward function raised, if one did."""
        return (self.verifier.errors + (self.reward.errors if self.reward else []))[:1]

    def close(self) -> None:
        """Stop the processes of verifier and reward function."""
        for name in ("verifier", "reward"):
            if started := self.__dict__.get(name):
                started.close()

    def keep(self, fits: Callable[[Sequence[Question]], list[Question]], why: str) -> "Task":
        """Return the task with only the questions that `fits` keeps, and messages about the others in `skipped`.

        Raises:
            ValueError: if a source has no training question left.
        """
        train, test = [fits(source) for source in self.train], fits(self.test)
        told = list(self.skipped)
        for name, before, after in (
            ("training", sum(map(len, self.train)), sum(map(len, train))),
            ("held-out", len(self.test), len(test)),
        ):
            if after < before:
                told.append(f"skipped {before - after:,} of {before:,} {name} questions: {why}")
        if not all(train):
            raise ValueError(f"no training question is left: {told[-1] if told else 'there was none'}")
        return replace(self, train=train, test=test, skipped=tuple(told))
