"""Answers rewritten to what math-verify reads."""

import pytest

from llmtrain.verifiers.math.answer_latex import readable


@pytest.mark.parametrize(
    ("answer", "latex"),
    [
        ("2 1/2", "2\\frac{1}{2}"),
        ("\\frac12", "\\frac{1}{2}"),
        ("√2", "\\sqrt{2}"),
        ("18 dollars per day", "18"),
        ("5\\text{ cm}^2", "5"),
        ("0.1\\overline{6}", "\\frac{15}{90}"),
        ("E_{1}'", "\\variable{Eprime_{1}}"),
        ("x", "x"),
    ],
)
def test_forms_of_benchmarks(answer, latex):
    assert readable(answer) == latex


def test_a_letter_is_a_unit_only_if_asked():
    assert readable("6m") == "6m"
    assert readable("6m", letters=True) == "6"
