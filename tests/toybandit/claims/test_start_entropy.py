"""Errors from a share of the initial entropy."""

import numpy as np
import pytest

from toybandit.claims.registry import Effort
from toybandit.claims.start_entropy import held, missed, under

EFFORT = Effort(instances=1, runs=2, states=8, rollouts=10)


def test_the_error_is_that_of_each_run_from_its_own_start():
    """Starts of 2 and 1 nats, last fifths of .9 and .4: .1 above and 0 off 0.4 times the start."""
    entropy = np.array([[2.0, 1.5, 1.5, 1.5, 0.9], [1.0, 0.8, 0.8, 0.8, 0.4]])
    np.testing.assert_allclose(missed(entropy, 0.4), [0.1, 0.0], atol=1e-15)
    assert held({"second": missed(entropy, 0.4) / 10}).holds
    assert not held({"first": missed(entropy, 0.4) + 1}).holds


def test_a_relative_target_is_the_share_of_the_measured_entropy():
    relative = under(EFFORT, "noisy", "aer", "0.4x", delta=0.05, coef_max=0.5)
    assert relative.shape == (2, 11)
    assert relative[0, 0] != pytest.approx(relative[1, 0])
