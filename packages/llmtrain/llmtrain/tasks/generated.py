"""Generated tasks: Countdown, and the tasks by name."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..data import Question
from ..settings.config import SFTConfig, TaskConfig
from ..verifiers import Verifier, countdown, get_verifier
from .arithmetic import EASY, arithmetic_task
from .constraints import constraints_task
from .task import Examples, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def countdown_task(config: TaskConfig, *, max_number: int = 12, max_target: int = 100) -> Task:
    """Return the Countdown task, with problems generated from the seed; the limits are those of the numbers in them.

    Raises ValueError if there are not so many problems: 4,756 with the default limits.
    """
    counts = config.train_problems, config.test_problems
    try:
        train, test = countdown.split(*counts, config.seed, max_number=max_number, max_target=max_target)
    except ValueError as error:
        raise ValueError(f"{error}, as task.name countdown-wide does, or lower task.train_problems") from None

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


TASKS: dict[str, Callable[[TaskConfig], Task]] = {
    "countdown": countdown_task,
    "countdown-wide": partial(countdown_task, max_number=25, max_target=250),
    "arithmetic": arithmetic_task,
    "arithmetic-easy": partial(arithmetic_task, kinds=EASY),
    "constraints": constraints_task,
}
"""Generated tasks by name; countdown-wide has enough problems for runs in which none repeats."""
