"""No answer without work, lying program or expression against the rules is rewarded (benchmarks/red_team.py)."""

from dataclasses import replace
from functools import cache

import pytest
from benchmarks import red_team
from benchmarks.red_team_answers import formulas, is_truth, sides, value
from benchmarks.red_team_programs import STYLES
from benchmarks.red_team_questions import QUESTIONS

from llmtrain.data import Question
from llmtrain.verifiers import get_verifier

QUICK, PROGRAMS, TESTS, REAL = 3, 3, 3, 2
"""Questions of the quick tests, lying programs of a style, tests that each is tried on, questions of a data set."""


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def math():
    with get_verifier("math", workers=1, timeout=5.0) as verifier:
        yield verifier


def test_pieces_of_a_question():
    assert formulas("If $x+2=5$, find $x$ of 3 * 4 pens.") == ["3 * 4", "x+2=5", "x"]
    assert sides("If $x+2=5$, find $x$.") == ["x+2", "5"]
    assert "1+2" in formulas("\\[1+2\\] is what?")


@pytest.mark.parametrize(
    ("answer", "truth", "same"),
    [
        ("0.50", "\\frac{1}{2}", True),
        ("x = 7", "7", True),
        ("1,234", "1234", True),
        ("3\\times 10^{8}", "3e8", True),
        ("$\\left(1, 2\\right)$", "(1,2)", True),
        ("45^\\circ", "45", True),
        ("2+3", "5", False),
        ("7, 8", "7", False),
        ("1/3", "0.333", False),
        ("141 - 623", "-482", False),
    ],
)
def test_the_truth_in_plain_sight(answer, truth, same):
    assert is_truth(answer, truth) is same


def test_a_value_needs_a_finished_number():
    assert value("2\\frac{1}{3}") * 3 == 7
    assert value("1/0") is None
    assert value("2^3") is None


def own(count: int | None) -> list[Question]:
    return QUESTIONS[:count]


@cache
def sets(count: int) -> dict[str, list[Question]]:
    return dict(red_team.question_sets(count))


def generated(count: int) -> list[Question]:
    return sets(count)["arithmetic"]


@pytest.mark.parametrize(
    ("questions", "count"),
    [(own, QUICK), slow(own, None), (generated, QUICK), slow(generated, 20)],
)
def test_answers_without_work_earn_nothing(math, questions, count):
    row = red_team.attack_math("arithmetic" if questions is generated else "own questions", questions(count), math)
    assert not row.fooled, row.fooled
    assert not row.refused, row.refused


@pytest.mark.slow
@pytest.mark.parametrize("name", red_team.FILES)
def test_real_questions_are_not_answered_without_work(math, name):
    if not (red_team.data_folder() / name).is_file():
        pytest.skip(f"{name} is missing: ENTROSTAT_DATA names the folder of the benchmarks")
    row = red_team.attack_math(name, sets(REAL)[name.split(".")[0]], math)
    assert not row.fooled, row.fooled
    assert not row.refused, row.refused


def test_expressions_against_the_rules_earn_nothing():
    with get_verifier("countdown", workers=1, timeout=5.0) as verify:
        row = red_team.attack_countdown(verify)
    assert not row.fooled, row.fooled
    assert not row.refused, row.refused


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_lying_programs_pass_no_test_and_honest_ones_all(style):
    assert len(style.lies) >= 40
    assert len(style.honest) >= 5
    with get_verifier("python", workers=1, timeout=5.0) as verify:
        row = red_team.attack_programs(replace(style, tests=style.tests[:TESTS]), verify, PROGRAMS)
    assert not row.fooled, row.fooled
    assert not row.refused, row.refused
