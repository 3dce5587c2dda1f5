"""Numbers with standard errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toybandit.uncertainty import Measured, apart, band, highest, jackknife, mean, ordered

NUMBERS = st.lists(st.floats(-10, 10), min_size=2, max_size=9)


@pytest.mark.parametrize(
    ("error", "spec", "text"),
    [
        (0.02, ".2f", "0.60 ± 0.02"),
        (0.02, "+.2f", "+0.60 ± 0.02"),
        (0.02, ".0%", "60% ± 2%"),
        (0.0004, ".2f", "0.60 ± <0.01"),
        (0.0004, ".1%", "60.0% ± <0.1%"),
        (0.2, ".0f", "1 ± <1"),
        (0.0, ".2f", "0.60 ± 0.00"),
        (float("nan"), ".2f", "0.60"),
    ],
)
def test_a_number_shows_its_error(error, spec, text):
    assert format(Measured(0.6, error), spec) == text


def test_the_mean_by_hand():
    found = mean(np.array([1.0, 3.0]))
    assert (found, found.error) == (2.0, 1.0)
    assert np.isnan(mean(np.array([1.0])).error)
    assert type(found + 1) is float


@given(NUMBERS)
def test_the_jackknife_of_a_mean_is_its_standard_error(values):
    runs = np.array(values)
    found = jackknife(lambda x: {"mean": x.mean()}, runs)["mean"]
    assert found == mean(runs)
    assert found.error == pytest.approx(mean(runs).error, rel=1e-6, abs=1e-9)


def test_the_jackknife_of_a_ratio_by_hand():
    """Ratio 4/6; without the first run 3/4, without the second 1/2."""
    found = jackknife(lambda x, y: {"ratio": x.sum() / y.sum()}, np.array([1.0, 3.0]), np.array([2.0, 4.0]))["ratio"]
    assert found == pytest.approx(2 / 3)
    assert found.error == pytest.approx(0.125)


def test_a_band_is_two_standard_errors():
    table = band("x", np.array([[1.0, 0.0], [3.0, 0.0]]))
    assert {name: column.tolist() for name, column in table.items()} == {"x": [2, 0], "x_low": [0, 0], "x_high": [4, 0]}


def test_pairs_decide_what_is_apart():
    first = np.array([0.0, 5.0, 9.0])
    assert apart(first, first + np.array([1.0, 1.0, 1.1]))
    assert not apart(first, first + np.array([1.0, -1.0, 1.0]))


def test_orders_and_the_highest():
    series = {"b": np.array([2.0, 3.0]), "a": np.array([0.9, 1.0]), "c": np.array([3.0, 1.9])}
    assert ordered(series, ".2f") == "a 0.95 ± 0.05 < c 2.45 ± 0.55 ≈ b 2.50 ± 0.50"
    assert highest({"x": np.array([1.0, 1.2]), "y": np.array([0.0, 0.1]), "z": np.array([1.2, 0.9])}) == ["x", "z"]
