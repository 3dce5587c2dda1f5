"""Calibration against hand-computed values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtrain.evaluation.calibration import calibration, calibration_error, densities


def test_by_hand():
    logp, correct = np.log([0.9, 0.6, 0.8, 0.3]), [1, 1, 0, 0]
    found = calibration(logp, correct)
    assert found.right == pytest.approx(np.log(0.9 * 0.6) / 2)
    assert found.gap == pytest.approx(np.log(0.9 * 0.6) / 2 - np.log(0.8 * 0.3) / 2)
    assert found.auroc == pytest.approx(3 / 4)  # of four pairs only (0.6, 0.8) is the wrong way round
    # Each is alone in its bin: |1 − 0.9|, |1 − 0.6|, |0 − 0.8|, |0 − 0.3|.
    assert found.ece == pytest.approx((0.1 + 0.4 + 0.8 + 0.3) / 4)
    assert found.reason == ""


def test_calibration_error_is_within_a_bin_of_means():
    assert calibration_error([0.71, 0.79, 0.75, 0.75], [1, 1, 1, 0]) == pytest.approx(0)
    # A bin holds its upper edge: 0.5 and 0.41 are together, 0.51 is in the next one.
    assert calibration_error([0.5, 0.41, 0.51], [1, 0, 1]) == pytest.approx((0.09 + 0.49) / 3)
    assert calibration_error([0.0, 0.1, 0.2], [1, 1, 0]) == pytest.approx((1 + 0.9 + 0.2) / 3)


def test_ties_count_half_in_auroc():
    assert calibration([-1, -1, -1], [1, 0, 0]).auroc == pytest.approx(0.5)


@given(st.lists(st.tuples(st.integers(-9, 0), st.booleans()), min_size=2, max_size=20))
def test_auroc_is_the_share_of_pairs_in_order(rows):
    logp, correct = zip(*rows, strict=True)
    right = [x for x, c in rows if c]
    wrong = [x for x, c in rows if not c]
    found = calibration(logp, correct)
    if right and wrong:
        share = np.mean([(a > b) + 0.5 * (a == b) for a in right for b in wrong])
        assert found.auroc == pytest.approx(share)
    else:
        assert np.isnan(found.auroc)
        assert np.isnan(found.gap)
        assert found.reason == f"no response is {'wrong' if right else 'right'}"


def test_densities_integrate_to_one():
    found = densities([-3, -2, -1, -0.5], [0, 0, 1, 1])
    width = np.diff(found["edges"])
    assert np.sum(width * found["right"]) == pytest.approx(1)
    assert np.sum(width * found["wrong"]) == pytest.approx(1)
    rare = densities([-100.0, *np.linspace(-2, -1, 999)], [1] * 1000)
    assert rare["edges"][0] > -2.01
    assert (np.diff(rare["edges"]) * rare["right"]).sum() == pytest.approx(1)
    assert densities([-1, -2], [1, 1])["wrong"] == [0] * len(width)
    one = densities([-1, -2, -3], [1, 0, 0])
    assert (np.diff(one["edges"]) * one["right"]).sum() == pytest.approx(1)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="one log-probability for each outcome"):
        calibration([-1.0], [1, 0])
