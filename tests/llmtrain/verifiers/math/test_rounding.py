"""Exact values beside what they are rounded to."""

import pytest

from llmtrain.verifiers.math.rounding import exact_or_rounded


@pytest.mark.parametrize(
    ("given", "wanted", "side"),
    [
        ("\\frac{1}{6} \\approx 0.167", "\\frac{1}{6}", "\\frac{1}{6}"),
        ("\\frac{1}{6} \\approx 0.167", "0.167", "0.167"),
        ("x = \\frac{1}{6} \\approx 0.167", "1", "x = \\frac{1}{6}"),
        ("2\\sqrt{3} \\approx 3.46", "2\\sqrt{3}", "2\\sqrt{3}"),
        ("\\pi \\approx 3.14", "\\pi", "\\pi"),
    ],
)
def test_the_side_that_the_truth_asks_for(given, wanted, side):
    assert exact_or_rounded(given, wanted) == side


@pytest.mark.parametrize(
    "given", ["\\frac{1}{6} \\approx 0.177", "3 \\approx 4", "x \\approx 2.5", "2.5", "1 \\approx 1.5"]
)
def test_wrong_roundings_and_other_texts_stay_as_they_are(given):
    assert exact_or_rounded(given, "7") == given
