"""What is left out of answers as text, and the values of plain numbers."""

from fractions import Fraction

import pytest

from llmtrain.verifiers.math.answer_text import compact, number, read_truth, tidy


@pytest.mark.parametrize(
    ("truth", "answer"),
    [("5 + 13 = 18\n#### 18", "18"), ("so \\boxed{ 3 }, not 4", "3"), (" x + 1\n", "x + 1"), (7, "7"), (0.5, "0.5")],
)
def test_the_answer_within_a_ground_truth(truth, answer):
    assert read_truth(truth) == answer


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("$ 5 $.", "5"),
        ("\\left(1,\\dfrac12 \\right)", "(1,\\frac12 )"),
        ("a \\leftarrow\n b", "a \\leftarrow b"),
        ("\\mathbf{ $42.$ }", "42"),
        ("\\text{ even }", "\\text{ even }"),
    ],
)
def test_what_has_no_meaning(answer, text):
    assert tidy(answer) == text


def test_spaces_that_separate_nothing():
    assert [compact(text) for text in ("( 1 , 2 )", "\\cot x", "2 1/2")] == ["(1,2)", "\\cotx", "2 1/2"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("\\frac{84}{2}", 42),
            ("-\\frac{1}{2}", Fraction(-1, 2)),
            ("3/4", Fraction(3, 4)),
            ("-3/4", Fraction(-3, 4)),
        ),
        *(("1 000 000", 1_000_000), ("1,234.5", Fraction("1234.5")), ("- 3", -3)),
        *(("50\\%", 50), ("50%", 50), ("\\$5", 5)),
        *((text, None) for text in ("1/0", "\\frac{1}{0}", "2 1/2", "1 2", "12,34", "x", "")),
    ],
)
def test_plain_numbers(text, value):
    assert number(text) == value
