"""Figures of The Entropy Mechanism on covariance."""

import numpy as np
import pytest

from toybandit.reproduce import FIGURES, QUICK
from toybandit.reproduce.entropy_mechanism_dynamics import PUBLISHED

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured():
    return {name: FIGURES[f"entropy-mechanism-{name}"](QUICK) for name in ("4", "12", "table-1")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["4", "12", "table-1"])
def test_pictures_are_their_tables(name, measured, drawn_from_its_table):
    assert drawn_from_its_table(FIGURES[f"entropy-mechanism-{name}"], measured[name])


def test_entropy_falls_as_far_as_the_covariance_says(measured):
    numbers = measured["4"].numbers
    assert numbers["measured_over_predicted"] == pytest.approx(1, abs=0.25)
    assert numbers["spearman"] > 0.4
    assert numbers["smallest_covariance"] > 0


def test_easy_states_lead_at_first_and_hard_ones_later(measured):
    numbers = measured["12"].numbers
    assert numbers["hard_at_first"] < 0 < numbers["easy_at_first"]
    assert 0 < numbers["crossing"] < np.inf
    accuracies = [float(name.split()[1].rstrip("%")) for name in measured["12"].series("series")]
    assert accuracies == sorted(accuracies)


def test_few_samples_have_most_of_the_covariance(measured):
    table = measured["table-1"].table
    assert table["measured"].tolist() == sorted(table["measured"], reverse=True)
    assert table["published"].tolist() == list(PUBLISHED.values())
    assert 0 < measured["table-1"].numbers["mean"] < table["measured"][-1]
