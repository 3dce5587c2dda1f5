"""STEER, table 7 and figures 12 and 13."""

import numpy as np
import pytest

from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer_estimators import bin_edges, binned_means, estimate_in_bins, estimate_scatter, estimators
from toybandit.reproduce.steer_tokens import MODELS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table_7():
    return estimators(QUICK)


@pytest.mark.parametrize("model", MODELS)
def test_table_7_orders_the_estimators(table_7, model):
    error = {name: table_7.numbers[f"mse, {name}, {model}"] for name in ("exact", "own logit", "Ω", "OPEFO", "Cov")}
    assert error["exact"] < 1e-3 * error["own logit"]
    assert error["own logit"] < min(error["Ω"], error["OPEFO"])
    assert max(error["Ω"], error["OPEFO"]) < error["Cov"]
    assert table_7.numbers[f"pearson, exact, {model}"] > 0.999
    assert 0.5 < table_7.numbers[f"pearson, Ω, {model}"] < 0.9
    assert table_7.numbers[f"relative_mse, Ω, {model}"] > 5  # no estimate of the size


def test_covariance_is_worst_where_states_differ(table_7):
    rank = {model: table_7.numbers[f"spearman, Cov, {model}"] for model in MODELS}
    assert rank["alike"] > rank["mixed"] > 0.3  # not near zero, as the paper has it
    assert table_7.numbers["spearman, Ω, mixed"] > rank["mixed"] + 0.1


def test_binned_means_by_hand():
    truth = np.repeat([0.0, 1.0, 2.0], 50)
    means = binned_means(3 * truth, truth, bin_edges(truth))
    assert means["measured"].tolist() == [0, 1]  # the highest edge closes the last bin
    assert means["estimate"].tolist() == [0, 3]
    assert means["tokens"].tolist() == [50, 50]


def test_figure_12_rises(drawn_from_its_table):
    data = estimate_in_bins(QUICK)
    assert data.numbers["slope, exact"] == pytest.approx(1, abs=0.02)
    assert data.numbers["slope, Ω"] > 2
    assert drawn_from_its_table(estimate_in_bins, data)


def test_figure_13_signs(drawn_from_its_table):
    data = estimate_scatter(QUICK)
    assert data.numbers["wrong sign, exact"] < 0.01 < data.numbers["wrong sign, Ω"] < 0.2
    assert drawn_from_its_table(estimate_scatter, data)


def test_table_7_is_drawn_from_its_table(table_7, drawn_from_its_table):
    assert drawn_from_its_table(estimators, table_7)
