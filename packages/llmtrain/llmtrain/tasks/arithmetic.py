"""Arithmetic in words: generated questions with worked solutions, of graded difficulty.

Question: What is 48 + 7 * 12?          Question: It is 9:40. How many minutes is it until 13:05?
Answer: 7 * 12 = 84. 48 + 84 = 132. The answer is \\boxed{132}.
"""

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import cycle
from typing import TYPE_CHECKING

from ..data import Question
from ..settings.config import SFTConfig, TaskConfig
from ..verifiers import Verifier, get_verifier
from .task import Examples, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Worked = tuple[str, list[str], int]
"""Question, steps of its solution, and answer."""
MAX_REPEATS = 1000
"""Draws without a new question after which a kind counts as exhausted."""
FIRST_DAY = date(2023, 1, 1)
"""Days of a year that is no leap year."""


def arithmetic_task(config: TaskConfig, kinds: Sequence[str] = ()) -> Task:
    """Return the task: equally many questions of each kind, whose names are the sources. No question occurs twice.

    kinds: names in KINDS; empty for all.

    Raises:
        ValueError: if there are not so many different questions.
    """
    drawn = draw(config.train_problems + config.test_problems, config.seed, kinds)
    train, test = drawn[: config.train_problems], drawn[config.train_problems :]

    def examples(asked: Sequence[Sequence[Question]], sft: SFTConfig) -> Examples:
        solved = [(q.prompt, q.solution or "") for source in asked for q in source]
        return random.Random(sft.seed).sample(solved, min(sft.examples, len(solved)))

    def tokenizer(vocab_size: int) -> "PreTrainedTokenizerFast":
        from ..policy.tokenizer import build_bpe_tokenizer

        return build_bpe_tokenizer((f"{question.prompt}{question.solution}" for question in train), vocab_size)

    def verifier() -> Verifier:
        return get_verifier("math", workers=1)

    return Task([train], test, verifier, examples, tokenizer)


def draw(count: int, seed: int, kinds: Sequence[str] = ()) -> list[Question]:
    """Return `count` different questions, the kinds in turn; a function of the arguments only.

    kinds: names in KINDS; empty for all. Some kinds have the first questions that all kinds have of these.

    Raises:
        ValueError: if a kind has fewer questions than its share.
    """
    rng, found, seen = random.Random(seed), list[Question](), set[str]()
    names = cycle(KINDS)
    while len(found) < count:
        name = next(names)
        for _ in range(MAX_REPEATS):
            text, steps, answer = KINDS[name](rng)
            if text not in seen:
                break
        else:
            raise ValueError(f"there are not {count:,} different questions: set task.train_problems lower")
        seen.add(text)
        if not kinds or name in kinds:
            solution = " ".join(["", *steps, f"The answer is \\boxed{{{answer}}}."])
            found.append(Question(f"Question: {text}\nAnswer:", str(answer), source=name, solution=solution))
    return found


def sums(rng: random.Random, terms: int, digits: int, times: bool) -> Worked:
    """Return a sum of whole numbers; times: some are products, whose factors have at most two digits."""
    signs = [1] + [rng.choice((1, -1)) for _ in range(terms - 1)]
    parts, steps, values = [], [], []
    for i in range(terms):
        a, b = rng.randrange(10 ** (digits - 1), 10**digits), rng.randrange(2, 13)
        product = times and i == terms - 1
        if product:
            a = rng.randrange(2, 100)
            steps.append(f"{a} * {b} = {a * b}.")
        parts.append(f"{a} * {b}" if product else str(a))
        values.append(a * b if product else a)
    text, total = parts[0], values[0]
    for sign, part, value in zip(signs[1:], parts[1:], values[1:], strict=True):
        mark = "+" if sign > 0 else "-"
        text += f" {mark} {part}"
        steps.append(f"{total} {mark} {value} = {total + sign * value}.")
        total += sign * value
    return f"What is {text}?", steps, total


def units(rng: random.Random) -> Worked:
    """Return a conversion of two units of time, length or weight into the smaller one."""
    large, small, factor = rng.choice(UNITS)
    a, b = rng.randrange(2, 40), rng.randrange(1, factor)
    steps = [f"{a} * {factor} = {a * factor}.", f"{a * factor} + {b} = {a * factor + b}."]
    return f"How many {small} are {a} {large} and {b} {small}?", steps, a * factor + b


UNITS = (
    ("hours", "minutes", 60),
    ("days", "hours", 24),
    ("weeks", "days", 7),
    ("feet", "inches", 12),
    ("pounds", "ounces", 16),
    ("kilograms", "grams", 1000),
    ("metres", "centimetres", 100),
)
"""Larger unit, smaller unit, and how many of these it has."""


def clock(rng: random.Random) -> Worked:
    """Return the minutes between two times of a day."""
    begin, end = sorted(rng.sample(range(24 * 60), 2))
    (h, m), (k, n) = divmod(begin, 60), divmod(end, 60)
    steps = [f"{h} * 60 + {m} = {begin}.", f"{k} * 60 + {n} = {end}.", f"{end} - {begin} = {end - begin}."]
    return f"It is {h}:{m:02}. How many minutes is it until {k}:{n:02}?", steps, end - begin


def calendar(rng: random.Random) -> Worked:
    """Return the days between two dates of a year that is no leap year."""
    first, last = sorted(rng.sample(range(365), 2))
    a, b = (FIRST_DAY + timedelta(days) for days in (first, last))
    text = f"How many days after {_told(a)} is {_told(b)}, in a year that is no leap year?"
    steps = [f"{_told(a)} is day {first + 1}.", f"{_told(b)} is day {last + 1}."]
    return text, [*steps, f"{last + 1} - {first + 1} = {last - first}."], last - first


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _told(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.day}"


KINDS: dict[str, Callable[[random.Random], Worked]] = {
    "two-terms": lambda rng: sums(rng, 2, rng.choice((2, 3)), False),
    "two-terms-product": lambda rng: sums(rng, 2, rng.choice((1, 2)), True),
    "three-terms": lambda rng: sums(rng, 3, rng.choice((2, 3)), rng.random() < 0.5),
    "four-terms": lambda rng: sums(rng, 4, rng.choice((2, 3)), rng.random() < 0.5),
    "units": units,
    "clock": clock,
    "calendar": calendar,
}
"""Questions of each kind, from easy to hard."""
EASY = ("two-terms", "two-terms-product", "units")
"""Kinds that a small pretrained model sometimes solves after a few minutes of warm-up."""
