"""The math verifier on answers made by hand, and on garbage."""

import random
import time

import pytest

from llmtrain.verifiers.final_answer import final_answer, last_boxed, last_marked, last_number

RIGHT = [
    ("so \\boxed{42}.", "42"),
    ("first \\boxed{1}, then \\boxed{2}", "2"),
    ("\\boxed{\\dfrac{1}{2}}", "\\frac{1}{2}"),
    ("\\boxed{\\frac12}", "0.5"),
    ("\\boxed{1,234}", "1234"),
    ("\\boxed{50\\%}", "50"),
    ("\\boxed{ 007 }", "7"),
    ("\\boxed{x^2+1}", "1+x^2"),
    ("\\boxed{\\sqrt{8}}", "2\\sqrt{2}"),
    ("\\boxed{\\left(1, 2\\right)}", "(1,2)"),
    ("\\boxed{x=3}", "3"),
    ("\\boxed{\\text{Evelyn}}", "\\text{Evelyn}"),
    ("\\fbox{9}", "9"),
    ("Answer: $12$", "12"),
    ("**Answer:** 12.", "12"),
    ("Answer: \\boxed{12}", "12"),
    ("The final answer is 3/4", "0.75"),
    ("9 - 7 = 2\n#### 2", "2"),
    ("#### 1,000", "1000"),
    ("that makes 17 in all", "17"),
    ("it costs $5.50", "5.5"),
    ("-3", "-3"),
    ("\\boxed{18}", "5 + 13 = <<5+13=18>>18\n#### 18"),
    ("\\boxed{4}", 4),
    ("\\boxed{0.5}", 0.5),
]
WRONG = [
    ("\\boxed{42}", "43"),
    ("\\boxed{2}, though it may be 3", "3"),
    ("\\boxed{1/2}", "2"),
    ("\\boxed{-5}", "5"),
    ("\\boxed{}", "5"),
    ("", "5"),
    ("no number at all", "5"),
    ("\\boxed{x^2}", "x^3"),
    ("\\boxed{(1,2)}", "(2,1)"),
    ("\\boxed{5.0001}", "5"),
    ("\\boxed{" + "5" * 3000 + "}", "5"),
]


@pytest.mark.parametrize(("response", "truth"), RIGHT)
def test_right(math, response, truth):
    verdict = math([response], [truth])[0]
    assert verdict.correct, verdict


@pytest.mark.parametrize(("response", "truth"), WRONG)
def test_wrong(math, response, truth):
    verdict = math([response], [truth])[0]
    assert not verdict.correct, verdict


def test_what_is_extracted(math):
    assert math(["a \\boxed{\\frac{1}{2}} b"], ["0.5"])[0].extracted == "\\frac{1}{2}"
    assert math(["none"], ["0.5"])[0].extracted is None


@pytest.mark.parametrize("truth", ["", None, [], True])
def test_a_ground_truth_that_is_none(math, truth):
    verdict = math(["\\boxed{1}"], [truth])[0]
    assert not verdict.correct
    assert "ground truth" in verdict.reason


def test_boxes():
    assert last_boxed("\\boxed{a{b}c}") == "a{b}c"
    assert last_boxed("\\boxed{1} and \\boxed{2") == "1"
    assert last_boxed("\\boxed{\\}}") == "\\}"
    assert last_boxed("\\boxed{\\boxed{3}}") == "3"
    assert last_boxed("boxed{1}") is None


def test_marks_and_numbers():
    assert last_marked("Answer: 1\nAnswer: 2\nbye") == "2"
    assert last_marked("the answers are 1") is None
    assert last_number("1,234.5 and 6,78") == "78"
    assert last_number("3/4") == "3/4"
    assert last_number("7" * 100) is None
    assert final_answer("#### 3 \\boxed{4} Answer: 5") == "4"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("\\sqrt{12}", "2\\sqrt{3}", True),
        ("\\sqrt{12}", "2\\sqrt{2}", False),
        ("1000000\\pi", "1000001\\pi", False),
        ("\\frac{1}{3}", "0.333333", True),
        ("10^{-9}", "2\\cdot 10^{-9}", False),
        ("3+4i", "4i+3", True),
        ("3+4i", "3-4i", False),
        ("\\{1,2\\}", "\\{2,1\\}", True),
        ("[0,1)", "[0,1]", False),
        ("\\sin^2 x+\\cos^2 x", "1", True),
        ("30^\\circ", "30", True),
    ],
)
def test_what_is_equal(math, a, b, same):
    for given, wanted in ((a, b), (b, a)):
        assert math([f"\\boxed{{{given}}}"], [wanted])[0].correct is same


@pytest.mark.parametrize("answer", ["9^{9^{9^{9}}}", "9**9**9", "7" * 100_000, "(" * 1900, "{" * 900 + "}" * 900])
def test_a_pathological_answer_costs_its_timeout_at_most(math, answer):
    start = time.monotonic()
    verdicts = math([f"\\boxed{{{answer}}}", "\\boxed{1}"], ["5", "1"])
    assert [v.correct for v in verdicts] == [False, True]
    assert time.monotonic() - start < 2.5


def test_fuzzed_responses_do_no_harm(math):
    rng = random.Random(0)
    pieces = [
        "\\boxed{",
        "}",
        "{",
        "\\frac",
        "$",
        "Answer:",
        "####",
        "\0",
        "\x1b[2J",
        "𝟗",
        "٣",
        "\ud800",
        "∞",
        "-",
        "1",
        "2",
    ]
    pieces += [
        "\\left(",
        "\\right",
        "^",
        "_",
        "\\sqrt",
        "\\\\",
        "\n",
        " ",
        "=",
        ",",
        "x",
        "\\text{",
        "\\begin{pmatrix}",
        "&",
    ]
    responses = ["".join(rng.choices(pieces, k=rng.randrange(1, 14))) for _ in range(500)]
    before = dict(math.failures)
    start = time.monotonic()
    verdicts = math(responses, ["17"] * len(responses))
    assert len(verdicts) == 500
    assert not any(v.correct for v in verdicts)
    assert math.failures.get("crash", 0) == before.get("crash", 0)
    assert time.monotonic() - start < 25


@pytest.mark.parametrize(
    "piece", ["\\boxed{", "{", "}", "7", "1,", "Answer:", "answer is ", "#", "\\", "\n", "$", "-1/", "\x00"]
)
def test_megabytes_take_no_time(piece):
    text = piece * (2_000_000 // len(piece))
    start = time.monotonic()
    final_answer(text)
    final_answer("\\boxed{" + text)
    assert time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("given", "wanted", "same"),
    [
        ("\\cot x", "\\cotx", True),  # as public benchmarks have it
        ("2\\sin(\\omega t)", "2\\sin(\\omegat)", True),
        ("\\cot y", "\\cotx", False),
        ("x^2-1", "(x-1)(x+1)", True),
        ("x^2-1", "(x-1)(x+2)", False),
        ("y+1", "x+1", False),
        ("\\sin^2 x + \\cos^2 x", "1", True),
        ("\\frac{x}{x}", "1", True),
        ("\\sqrt{x-5}", "\\sqrt{x-6}", False),
        ("\\frac{1}{x-1}", "\\frac{1}{1-x}", False),
        ("\\ln(x^2)", "2\\ln(x)+10^{-3}", False),
    ],
)
def test_expressions_with_variables(math, given, wanted, same):
    assert math([f"so \\boxed{{{given}}}"], [wanted])[0].correct is same
