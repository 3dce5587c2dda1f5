"""Figures of The Entropy Mechanism on R = −a·e^H + b."""

import numpy as np
import pytest

from toybandit import Config
from toybandit.reproduce import FIGURES, QUICK
from toybandit.reproduce.entropy_mechanism_law import FAMILY, every, family, fitted, long_runs, progress, spaced

pytestmark = pytest.mark.slow

NUMBERS = (1, 2, 3, 7, 8, 10, 11)


@pytest.fixture(scope="module")
def measured():
    return {number: FIGURES[f"entropy-mechanism-{number}"](QUICK) for number in NUMBERS}


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_pictures_are_their_tables(number, measured, drawn_from_its_table):
    assert drawn_from_its_table(FIGURES[f"entropy-mechanism-{number}"], measured[number])
    assert all(np.isfinite(value) for value in measured[number].numbers.values())


def test_the_family_is_eleven_bandits():
    assert len(FAMILY) == 11
    assert len({str(Config(**changes).resolved()) for changes in FAMILY.values()}) == 11
    curves = family(QUICK, "noisy")
    np.testing.assert_array_equal(curves["4 arms"][0], long_runs(QUICK, arms=4, right_arms=1)[0])


def test_the_law_beats_a_line(measured):
    assert measured[1].numbers["r2_law"] > max(0.9, measured[1].numbers["r2_linear"])
    for number in (3, 7):
        assert np.mean(every(measured[number].numbers, "r2_over_line") > 0) > 0.85
        assert measured[number].numbers["least_r2"] > 0.9


def test_most_is_over_early(measured):
    numbers = measured[2].numbers
    for what in ("entropy_at_a", "reward_at_a"):
        assert 20 < numbers[f"{what}_twelfth"] < numbers[f"{what}_third"] < 100
        assert numbers[f"{what}_third"] > 75


def test_coefficients_do_not_depend_on_the_estimator(measured):
    numbers = measured[8].numbers
    assert 0 < numbers["a_spread"] < 0.15
    assert 0 < numbers["b_spread"] < 0.03


def test_the_end_is_predicted(measured):
    """Better than by the last reward seen, and by a line."""
    data = measured[10]
    assert data.numbers["mean_rmse"] < 0.03
    assert (every(data.numbers, "advantage") > 0).all()
    gains = [np.ptp(part.table["reward"]) for part in data.series("series").values()]
    assert data.numbers["mean_last_error"] < 0.3 * np.mean(gains)
    for part in data.series("series").values():
        assert part.table["seen"].mean() == pytest.approx(0.15, abs=0.01)


def test_a_is_a_power_of_the_number_of_arms(measured):
    numbers = measured[11].numbers
    assert numbers["power"] == pytest.approx(-1, abs=0.1)
    assert numbers["r2_a_power"] > numbers["r2_a_log_linear"]


def test_fits_of_known_curves():
    entropy = np.linspace(2, 0.1, 9)
    runs = np.stack([entropy, entropy])
    table, numbers = fitted({"x": (runs, 0.8 - 0.1 * np.exp(runs))})
    np.testing.assert_allclose(table["law"], table["reward"], rtol=1e-10)
    assert numbers["x/ceiling"] == pytest.approx(0.7, rel=1e-10)
    assert numbers["x/ceiling"].error == pytest.approx(0, abs=1e-10)
    assert every({"x/a": 1.0, "y/a": 2.0, "y/b": 3.0}, "a").tolist() == [1, 2]


def test_helpers_by_hand():
    np.testing.assert_allclose(progress(np.array([4.0, 3.0, 2.0])), [0, 50, 100])
    assert spaced(np.array([9.0, 8.9, 5.0, 1.2, 1.1, 1.0]), 3).tolist() == [0, 2, 5]
