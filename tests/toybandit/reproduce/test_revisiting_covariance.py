"""Figures 13 to 17 of Revisiting Entropy."""

import numpy as np
import pytest

from toybandit.reproduce import FIGURES, QUICK
from toybandit.reproduce.revisiting_covariance import LABELS, SETTINGS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured():
    return {number: FIGURES[f"revisiting-{number}"](QUICK) for number in SETTINGS}


@pytest.mark.slow
@pytest.mark.parametrize("number", SETTINGS)
def test_pictures_are_their_tables(number, measured, drawn_from_its_table):
    assert drawn_from_its_table(FIGURES[f"revisiting-{number}"], measured[number])


@pytest.mark.parametrize("number", SETTINGS)
def test_covariance_tells_the_change(number, measured):
    numbers = measured[number].numbers
    assert numbers["policy_gradient/spearman_of_a_run"] > 0.2
    assert numbers["policy_gradient/spearman_of_means"] > 0.4
    assert all(np.isfinite(value) for value in numbers.values())
    assert list(measured[number].series("series")) == list(LABELS)


def test_only_one_update_on_all_samples_moves_as_predicted(measured):
    ratio = {number: data.numbers["measured_over_predicted"] for number, data in measured.items()}
    assert ratio[13] == pytest.approx(1, abs=0.25)
    assert ratio[16] < ratio[15] < ratio[14]
