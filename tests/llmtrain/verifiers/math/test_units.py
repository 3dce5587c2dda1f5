"""Units of answers."""

from fractions import Fraction

import pytest

from llmtrain.verifiers.math.units import conversion, unit


@pytest.mark.parametrize(
    ("given", "wanted", "factor"),
    [
        ("cm", "m", Fraction(1, 100)),
        ("\\text{ cm}^2", "square metres", Fraction(1, 10_000)),
        ("\\mathrm{~km/h}", "m/s", Fraction(5, 18)),
        ("miles per hour", "mph", 1),
        ("mL", "cm^3", 1),
        ("inches", "ft", Fraction(1, 12)),
        ("hours", "min", 60),
        ("cents", "dollars", Fraction(1, 100)),
        ("arcmin", "degrees", Fraction(1, 60)),
        ("apples", "pieces", 1),
        ("km", "mm", 10**6),
    ],
)
def test_conversions(given, wanted, factor):
    assert conversion(given, wanted) == factor
    assert conversion(wanted, given) == 1 / Fraction(factor)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("cm", "s"), ("cm^2", "cm"), ("km/h", "km"), ("celsius", "fahrenheit"), ("m", "apples"), ("degree", "radian")],
)
def test_units_of_another_kind_have_no_conversion(given, wanted):
    assert conversion(given, wanted) is None
    assert conversion(wanted, given) is None


def test_words_that_are_no_unit():
    assert unit("apples") is None
    assert unit("") is None
