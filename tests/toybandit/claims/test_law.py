"""Which part of a run the law is asked about."""

import numpy as np
import pytest

from toybandit.claims.law import fits, forecasts, gain_seen, mean_of, points, prediction_errors
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


def test_forecasts_of_a_run_that_follows_the_law():
    """R = 2 − .5·e^H over 40 points: the law is exact, the last of the 6 seen values and a line are not."""
    entropy = np.linspace(1.5, 0.1, 40)
    reward = 2 - 0.5 * np.exp(entropy)
    found = forecasts(entropy, reward)
    assert {name: len(errors) for name, errors in found.items()} == dict.fromkeys(found, 34)
    np.testing.assert_allclose(found["law"], 0, atol=1e-9)
    np.testing.assert_allclose(found["last value"], reward[5] - reward[6:])
    slope = np.polyfit(entropy[:6], reward[:6], 1)
    np.testing.assert_allclose(found["line in H"], slope[0] * entropy[6:] + slope[1] - reward[6:])


def test_errors_and_gain_of_each_run(run):
    errors = prediction_errors(run)
    first = forecasts(*points(run)[0])
    assert errors["law"][0] == pytest.approx(np.sqrt((first["law"] ** 2).mean()))
    gained = (run.reward[:, 6] - run.reward[:, 0]) / (run.reward[:, -1] - run.reward[:, 0])
    np.testing.assert_allclose(gain_seen(run), gained)


def test_mean_of_the_beginning():
    np.testing.assert_array_equal(mean_of(np.array([1.0, 3.0, 9.0, 9.0]), 0.5), [2.0, 2.0])
