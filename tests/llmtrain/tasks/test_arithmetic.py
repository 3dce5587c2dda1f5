"""Arithmetic in words: answers by hand, solutions that the verifier accepts, and no question twice."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtrain.settings.config import SFTConfig, TaskConfig
from llmtrain.settings.presets import PRESETS
from llmtrain.tasks import arithmetic
from llmtrain.tasks.arithmetic import EASY, KINDS, MONTHS, arithmetic_task, draw
from llmtrain.tasks.task_registry import generated_task

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def value_of(text: str) -> int:
    """Return the answer of a question, computed in another way."""
    if "What is" in text:
        return eval(text.removeprefix("What is ").removesuffix("?"))
    if "after" in text:
        days = [sum(LENGTHS[: MONTHS.index(month)]) + int(day) for month, day in re.findall(r"([A-Z]\w+) (\d+)", text)]
        return days[1] - days[0]
    if "It is" in text:
        (h, m), (k, n) = ((int(a), int(b)) for a, b in re.findall(r"(\d+):(\d\d)", text))
        return 60 * (k - h) + n - m
    a, large, b, small = re.fullmatch(r"How many \w+ are (\d+) (\w+) and (\d+) (\w+)\?", text).groups()
    return int(a) * {(x, y): factor for x, y, factor in arithmetic.UNITS}[large, small] + int(b)


@given(st.sampled_from(list(KINDS)), st.integers(0, 2**32))
def test_answers_and_every_step_are_right(kind, seed):
    text, steps, answer = KINDS[kind](random.Random(seed))
    assert answer == value_of(text)
    for step in steps:
        left, equals, right = step.removesuffix(".").partition(" = ")
        assert not equals or eval(left) == int(right)
    assert steps[-1].endswith(f"= {answer}.")


def test_by_hand():
    text, steps, answer = arithmetic.clock(random.Random(0))
    assert (text, steps, answer) == (
        "It is 13:08. How many minutes is it until 14:21?",
        ["13 * 60 + 8 = 788.", "14 * 60 + 21 = 861.", "861 - 788 = 73."],
        73,
    )


def test_questions_are_split_without_overlap_and_repeat_with_the_seed():
    task = arithmetic_task(TaskConfig(name="arithmetic", train_problems=350, test_problems=70, seed=3))
    [train] = task.train
    assert not {q.prompt for q in train} & {q.prompt for q in task.test}
    assert len({q.prompt for q in train}) == 350
    assert Counter(q.source for q in task.test) == dict.fromkeys(KINDS, 10)
    assert draw(420, 3) == [*train, *task.test]
    assert draw(420, 4) != draw(420, 3)


def test_easy_questions_held_out_are_not_among_those_of_the_warm_up():
    """The warm-up of preset smollm-cpu learns from questions of all kinds."""
    warm_up = {q.prompt for q in arithmetic_task(PRESETS["smollm-cpu"].task).train[0]}
    config = TaskConfig(name="arithmetic-easy", train_problems=2048, test_problems=129)
    task = generated_task(config)
    assert Counter(q.source for q in task.test) == dict.fromkeys(EASY, 43)
    assert not {q.prompt for q in task.test} & (warm_up | {q.prompt for q in task.train[0]})


@pytest.mark.slow
def test_worked_solutions_are_right_for_the_verifier():
    task = arithmetic_task(TaskConfig(name="arithmetic", train_problems=7, test_problems=14))
    verdicts = task.verify(task.test, [q.solution for q in task.test])
    wrong = task.verify(task.test, [q.solution.replace("\\boxed{", "\\boxed{1") for q in task.test])
    task.close()
    assert all(verdict.correct for verdict in verdicts)
    assert not any(verdict.correct for verdict in wrong)
    examples = task.examples(SFTConfig(examples=5))
    assert len(examples) == 5
    assert set(examples) <= {(q.prompt, q.solution) for q in task.train[0]}


def test_more_questions_than_there_are(monkeypatch):
    monkeypatch.setattr(arithmetic, "KINDS", {"one": lambda rng: ("What is 1 + 1?", ["1 + 1 = 2."], 2)})
    with pytest.raises(ValueError, match=r"there are not 2 different questions: set task.train_problems lower"):
        draw(2, 0)
