"""Units that a question asks for."""

import pytest

from llmtrain.verifiers.math.asked_unit import in_another_unit
from llmtrain.verifiers.math.math_answer import check

HOURS, PACE = "How many hours did it take?", "How many miles per hour is that?"


@pytest.mark.parametrize(
    ("given", "question", "another"),
    [
        ("5 minutes", HOURS, True),
        ("5 hours", HOURS, False),
        ("5", HOURS, False),
        ("5 apples", HOURS, False),
        ("5 hours", f"{HOURS} Give the answer in minutes.", True),
        ("5 minutes", f"{HOURS} Give the answer in minutes.", False),
        ("5\\text{ km/h}", PACE, True),
        ("5 mph", PACE, False),
        ("\\$5", "How many cents does it cost?", True),
        ("5\\text{ cm}^2", "What is its area in square meters?", True),
        ("5 minutes", "What happened in week 2?", False),
    ],
)
def test_the_unit_of_the_question_counts_where_the_truth_has_none(given, question, another):
    assert in_another_unit(given, "5", question) is another


def test_a_unit_of_the_truth_comes_first():
    assert not in_another_unit("5 minutes", "5\\text{ minutes}", HOURS)


@pytest.mark.parametrize(
    ("response", "question", "right"),
    [
        ("The answer is 120 toys per week.", "How many toys does she make per day?", False),
        ("#### 120 dollars/week", "How much does he earn each month?", False),
        (r"\boxed{120\text{ miles per hour}}", "What is the speed in miles per minute?", False),
        ("The answer is 120 toys a day.", "How many toys does she make per day?", True),
        ("The answer is 120 toys per week.", "She makes 20 a day. How many toys does she make in a week?", True),
        ("The answer is 120 toys per week.", "How many toys does she make in a week at 20 a day?", True),
        ("The answer is 120 toys per week.", "How many toys does she make in all?", True),
    ],
)
def test_an_answer_for_another_time_is_another_answer(response, question, right):
    assert check(response, "120", question).correct is right
