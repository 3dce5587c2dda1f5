"""Generated tasks: Countdown, and the tasks by name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data import Question
from ..settings.config import SFTConfig, TaskConfig
from ..verifiers import Verifier, countdown, get_verifier
from .arithmetic import arithmetic_task
from .task import Examples, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def countdown_task(config: TaskConfig) -> Task:
    """Return the Countdown task, with problems generated from the seed."""
    train, test = countdown.split(config.train_problems, config.test_problems, config.seed)

    def examples(asked: Sequence[Sequence[Question]], sft: SFTConfig) -> Examples:
        return [*countdown.examples(train, sft.examples, sft.seed, wrong_share=sft.wrong_share)]

    def tokenizer(vocab_size: int) -> "PreTrainedTokenizerFast":
        from ..policy.tokenizer import build_char_tokenizer

        return build_char_tokenizer(countdown.ALPHABET)

    def verifier() -> Verifier:
        return get_verifier("countdown")

    return Task([[*map(question, train)]], [*map(question, test)], verifier, examples, tokenizer)


def question(problem: countdown.Problem) -> Question:
    """Return a problem as a question."""
    truth = {"numbers": list(problem.numbers), "target": problem.target}
    return Question(countdown.prompt(problem), truth, source="countdown")


TASKS = {"countdown": countdown_task, "arithmetic": arithmetic_task}
"""Generated tasks by name."""
