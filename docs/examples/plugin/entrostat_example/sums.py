"""Sums of two numbers: a task, and the verifier of its responses.

Worker processes import this module for the verifier, so it imports no torch.
"""

import random
import re
from collections.abc import Sequence
from typing import Any

from llmtrain.data import Question
from llmtrain.settings.config import SFTConfig, TaskConfig
from llmtrain.tasks import Task
from llmtrain.tasks.task import Examples
from llmtrain.verifiers import Verdict, Verifier, get_verifier

NUMBERS = 100
"""The summands are 0 to NUMBERS − 1, so there are NUMBERS² questions."""


def last_number(response: str, truth: str) -> Verdict:
    """Judge the last whole number of a response."""
    found = re.findall(r"\d+", response)
    if not found:
        return Verdict(False, "no number")
    correct = found[-1] == truth
    return Verdict(correct, "equal" if correct else "not equal", found[-1])


def sums(config: TaskConfig) -> Task:
    """Return the task: different sums, drawn from the seed. Raises ValueError if there are not so many."""
    count = config.train_problems + config.test_problems
    if count > NUMBERS**2:
        raise ValueError(f"there are only {NUMBERS**2:,} different sums: set task.train_problems lower")
    pairs = [divmod(drawn, NUMBERS) for drawn in random.Random(config.seed).sample(range(NUMBERS**2), count)]
    questions = [Question(f"{a}+{b}=", str(a + b), source="sums") for a, b in pairs]
    train, test = questions[: config.train_problems], questions[config.train_problems :]

    def examples(asked: Sequence[Sequence[Question]], sft: SFTConfig) -> Examples:
        """Return prompts and responses for the supervised warm-up."""
        return [(question.prompt, question.ground_truth) for source in asked for question in source][: sft.examples]

    def tokenizer(vocab_size: int) -> Any:
        from llmtrain.policy.tokenizer import build_char_tokenizer

        return build_char_tokenizer("0123456789+=")

    def verifier() -> Verifier:
        return get_verifier("last_number")

    return Task([train], test, verifier, examples, tokenizer)
