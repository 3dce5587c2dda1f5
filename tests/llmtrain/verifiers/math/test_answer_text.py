"""Answers as text, without what has no meaning."""

import pytest

from llmtrain.verifiers.math.answer_text import compact, read_truth, tidy


@pytest.mark.parametrize(
    ("truth", "answer"),
    [
        *(
            ("5 + 13 = 18\n#### 18", "18"),
            ("so \\boxed{ 3 }, not 4", "3"),
            (" x + 1\n", "x + 1"),
            (7, "7"),
            (0.5, "0.5"),
        ),
        *(("is $\\boxed 9$.", "9"), ("\\boxed27", "27"), ("\\boxed \\pi", "\\pi"), ("\\boxed{1}, \\boxed{2}", "1, 2")),
    ],
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
        ("$.5$.", ".5"),
    ],
)
def test_what_has_no_meaning(answer, text):
    assert tidy(answer) == text


def test_spaces_that_separate_nothing():
    assert [compact(text) for text in ("( 1 , 2 )", "\\cot x", "2 1/2")] == ["(1,2)", "\\cotx", "2 1/2"]
