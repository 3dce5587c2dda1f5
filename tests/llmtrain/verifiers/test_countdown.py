"""The countdown task: generation, solutions, and a verifier that never raises."""

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtrain.verifiers import countdown
from llmtrain.verifiers.countdown import Problem, generate, prompt, solve, split, verify, wrong

PROBLEM = Problem((3, 5, 7), 22)


def test_task_needs_no_torch():
    code = "import sys, llmtrain.verifiers.countdown; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def test_generate_depends_on_the_seed_only():
    assert generate(50, 3) == generate(50, 3)
    assert generate(50, 3) != generate(50, 4)


def test_generate_respects_its_limits():
    problems = generate(300, 0, counts=(3, 4), max_number=9, max_target=30)
    assert {len(p.numbers) for p in problems} == {3, 4}
    assert all(1 <= x <= 9 for p in problems for x in p.numbers)
    assert all(1 <= p.target <= 30 for p in problems)
    assert len({p.key for p in problems}) == 300


def test_generate_counts_permutations_as_repeats():
    # With numbers up to 2 there are few problems, so an unfiltered draw would repeat some.
    problems = generate(8, 0, max_number=2)
    assert len({p.key for p in problems}) == 8


def test_split_is_disjoint_and_repeats():
    train, test = split(200, 50, 7)
    assert (len(train), len(test)) == (200, 50)
    assert not {p.key for p in train} & {p.key for p in test}
    assert split(200, 50, 7) == (train, test)


def test_split_gives_both_parts_the_same_difficulty():
    """In a nearly exhausted space late draws have few solutions; both parts must hold early and late draws."""
    drawn = generate(1200, 0, max_number=9, max_target=30)
    train, test = split(900, 300, 0, max_number=9, max_target=30)
    assert set(train) | set(test) == set(drawn)
    late = set(drawn[600:])
    assert abs(sum(p in late for p in test) / 300 - 0.5) < 0.1


def test_prompt_text():
    assert prompt(PROBLEM) == "3 5 7=22:"


@pytest.mark.parametrize("counts", [(2,), (3,), (4,)])
def test_solutions_are_correct_and_wrong_ones_only_miss_the_value(counts):
    rng = random.Random(0)
    for problem in generate(60, 1, counts=counts):
        assert verify(problem, solve(problem, rng)).correct
        verdict = verify(problem, wrong(problem, rng))
        assert not verdict.correct
        assert verdict.reason.startswith("value is")
        assert set(prompt(problem)) <= set(countdown.ALPHABET)


def test_solutions_vary_with_the_draw():
    rng = random.Random(0)
    assert len({solve(PROBLEM, rng) for _ in range(40)} | {solve(Problem((2, 2, 4), 8), rng) for _ in range(40)}) > 3


def test_examples_mix_in_the_wrong_share():
    problems = generate(100, 0)
    by_prompt = {prompt(p): p for p in problems}
    pairs = countdown.examples(problems, 1000, 0, wrong_share=0.3)
    right = sum(verify(by_prompt[text], answer).correct for text, answer in pairs)
    assert 650 <= right <= 750
    assert pairs == countdown.examples(problems, 1000, 0, wrong_share=0.3)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: generate(10, 0, counts=(2,), max_number=1), r"found only \d+ of 10"),
        (lambda: generate(1, 0, counts=(1,)), "counts .*2"),
        (lambda: solve(Problem((1, 1), 99), random.Random(0)), "no expression"),
        (lambda: wrong(Problem((4,), 4), random.Random(0)), "no wrong expression"),
        (lambda: countdown.examples([PROBLEM], 1, 0, wrong_share=-0.1), "wrong_share"),
        (lambda: countdown.examples([PROBLEM], 1, 0, wrong_share=1.1), "wrong_share"),
    ],
)
def test_a_refusal_names_what_cannot_be(call, names):
    with pytest.raises(ValueError, match=names):
        call()


@pytest.mark.parametrize(
    ("numbers", "target", "response"),
    [
        ((3, 5, 7), 22, "5*3+7"),
        ((3, 5, 7), 22, " 7 + ( 5 * 3 ) "),
        ((3, 5, 7), 22, "((((7))))+5*3"),
        ((8, 4, 2), 1, "8/4/2"),
        ((8, 4, 2), 6, "8-4/2"),
        ((10, 3, 2), 5, "10-3-2"),
        ((1, 3, 3), 1, "1/3*3"),  # exact only in rationals
        ((8, 3, 8, 3), 24, "8/(3-8/3)"),
        ((0, 5), 5, "5+0"),
        ((2, 5), -3, "2-5"),
    ],
)
def test_correct_responses(numbers, target, response):
    assert verify(Problem(numbers, target), response) == countdown.Verdict(True, "correct")


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("3+5+7", "value is 15, not 22"),
        ("5/3+7", "value is 26/3, not 22"),
        ("5*3", "number 7 not used"),
        ("5*3+7+3", "number 3 used more often than given"),
        ("5*3+7*1", "number 1 used more often than given"),
        ("5*3+7=", "unexpected '='"),
        ("5*3+7)", "unexpected ')'"),
        ("(5*3+7", "unbalanced"),
        ("5*3+", "expected a number at 4, found the end"),
        ("()", "expected a number"),
        ("-7+5*3", "expected a number"),
        ("+7+5*3", "expected a number"),
        ("5**3+7", "expected a number"),
        ("5 3+7", "unexpected '3'"),
        ("5(3)+7", "unexpected '('"),
        ("05*3+7", "leading zero"),
        ("5.0*3+7", "unexpected '.'"),
        ("3/(5-5)+7", "division by zero"),
        ("٣*5+7", "expected a number"),
        ("5*3+７", "expected a number"),
        ("5*3²+7", "unexpected '²'"),
        ("5*3\n+7", "unexpected '\\n'"),
        ("5*3+7\x00", "unexpected"),
        ("\ud800", "expected a number"),
        ("__import__('os')", "expected a number"),
        ("(" * 100 + "7" + ")" * 100, "nested deeper"),
        ("1" * 250, "used more often"),
        ("(" * 100_000, "longer than 256"),
        ("9" * 1_000_000, "longer than 256"),
    ],
)
def test_bad_responses_give_a_reason(response, reason):
    verdict = verify(PROBLEM, response)
    assert not verdict.correct
    assert reason in verdict.reason


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=300), st.text(alphabet=countdown.ALPHABET, max_size=40)))
def test_verify_never_raises(response):
    assert verify(PROBLEM, response).reason


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="+-*/() 357", max_size=14))
def test_verdict_agrees_with_python_arithmetic(response):
    """On the language's own characters, what is called correct is what Python's arithmetic also calls correct."""
    if verify(PROBLEM, response).correct:
        assert abs(eval(response, {"__builtins__": {}}) - 22) < 1e-9
