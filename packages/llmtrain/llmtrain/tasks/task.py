"""A task: problems to train on, others held out, and the verifier that tells right from wrong."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..config import SFTConfig, TaskConfig
from ..verdict import Verdict
from . import countdown


@dataclass(frozen=True)
class Task:
    """What training and evaluation need to know of a task."""

    train: Sequence[Any]
    test: Sequence[Any]
    alphabet: str
    """Characters of prompts and responses, for a character tokenizer."""
    prompt: Callable[[Any], str]
    verify: Callable[[Any, str], Verdict]
    """(problem, response) to a verdict; never raises."""
    examples: Callable[[SFTConfig], list[tuple[str, str]]]
    """(prompt, response) pairs for the supervised warm-up."""

    def epoch(self, step: int, prompts: int) -> int:
        """Pass over the training problems, from 1, in which step `step` begins."""
        return 1 + step * prompts // len(self.train)

    def train_batch(self, step: int, prompts: int, seed: int) -> list[Any]:
        """The problems of a step: each pass over the data has an order of its own, drawn from the seed."""
        first = step * prompts
        batch: list[Any] = []
        while len(batch) < prompts:
            epoch, offset = divmod(first + len(batch), len(self.train))
            order = random.Random(f"order-{seed}-{epoch}").sample(range(len(self.train)), len(self.train))
            batch += [self.train[i] for i in order[offset : offset + prompts - len(batch)]]
        return batch


def get_task(config: TaskConfig) -> Task:
    """The task that a configuration names."""
    return TASKS[config.name](config)


def _countdown(config: TaskConfig) -> Task:
    train, test = countdown.split(config.train_problems, config.test_problems, config.seed)

    def examples(sft: SFTConfig) -> list[tuple[str, str]]:
        return countdown.examples(train, sft.examples, sft.seed, wrong_share=sft.wrong_share)

    return Task(train, test, countdown.ALPHABET, countdown.prompt, countdown.verify, examples)


TASKS: dict[str, Callable[[TaskConfig], Task]] = {"countdown": _countdown}
