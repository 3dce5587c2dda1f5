"""Values of plain numbers, and which are equal."""

from fractions import Fraction

import pytest

from llmtrain.verifiers.math.plain_number import number, same_number


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


@pytest.mark.parametrize(
    ("given", "wanted", "same"),
    [
        *(("0.333333", "1/3", True), ("0.3333", "1/3", False), ("50\\%", "50", True), ("50%", "0.5", True)),
        *(("50%", "5", False), ("4.5e33", "4.5\\times10^{33}", True), (".5", "1/2", True), ("x", "1", None)),
    ],
)
def test_equal_numbers(given, wanted, same):
    assert same_number(given, wanted) is same
