"""Which part of a run the law is asked about."""

import numpy as np
import pytest

from toybandit.claims.law import fits, points
from toybandit.claims.registry import Effort
from toybandit.claims.runs import trajectory

EFFORT = Effort(instances=1, runs=3, states=64, rollouts=40)


@pytest.fixture(scope="module")
def run():
    return trajectory(EFFORT, env="det")


def test_points_are_what_rollouts_start_from(run):
    assert [(h.shape, r.shape) for h, r in points(run)] == [((40,), (40,))] * 3
    entropy, reward = points(run, 10)[1]
    np.testing.assert_array_equal(entropy, run.entropy[1, :10])
    np.testing.assert_array_equal(reward, run.reward[1, :10])


def test_fits_of_each_run(run):
    """R² is the squared correlation of the reward with e^H, and with H."""
    law, straight = fits(run, 40)
    for i in range(3):
        h, r = run.entropy[i, :-1], run.reward[i]
        assert law[i] == pytest.approx(np.corrcoef(np.exp(h), r)[0, 1] ** 2)
        assert straight[i] == pytest.approx(np.corrcoef(h, r)[0, 1] ** 2)


def test_arms_that_earn_alike_leave_nothing_to_fit():
    """Without signal the reward does not move, and the law says nothing of the fall of the entropy."""
    law, _ = fits(trajectory(EFFORT, env="pure"), 40)
    assert np.isnan(law).all()
