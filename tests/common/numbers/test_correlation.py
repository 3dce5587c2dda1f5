"""Correlations, by hand."""

import math

import numpy as np
import pytest

from entrostat.numbers.correlation import pearson, ranks, spearman


def test_pearson_by_hand():
    # deviations (−1, 0, 1) and (−4, −1, 5)/3: products sum to 3, squares to 2 and 42/9
    assert pearson([1, 2, 3], [1, 2, 4]) == pytest.approx(3 / math.sqrt(2 * 14 / 3), rel=1e-14)
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1, rel=1e-14)


def test_ties_share_their_mean_rank():
    np.testing.assert_array_equal(ranks([10, 20, 20, 5]), [1, 2.5, 2.5, 0])


def test_spearman_sees_order_only():
    x = np.array([0.1, 5.0, 2.0, 9.0])
    assert spearman(x, np.exp(x)) == pytest.approx(1, rel=1e-14)
    assert spearman([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6, rel=1e-14)


def test_a_constant_column_has_no_correlation():
    assert math.isnan(pearson([1, 1], [1, 2]))
    assert math.isnan(spearman([1, 2], [3, 3]))
    assert math.isnan(pearson([0.1, 0.1, 0.1], [1, 2, 4]))


def test_small_numbers_correlate_as_large_ones():
    assert pearson([1e-90, 2e-90, 3e-90], [1e-90, 2e-90, 4e-90]) == pytest.approx(pearson([1, 2, 3], [1, 2, 4]))
