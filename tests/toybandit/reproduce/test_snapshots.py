"""The covariances of theory."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.reproduce.snapshots import covariance, covariances, expected_advantage

CONFIG = Config(env="on", states=3, arms=5, rollouts=12)


def test_covariance_by_hand():
    p = np.array([0.5, 0.25, 0.25])
    # means 1 and 0.5: Σ p·(x − 1)·y = 0.5·(−1)·1 + 0.25·1·0 + 0.25·1·0
    assert covariance(p, np.array([0.0, 2, 2]), np.array([1.0, 0, 0])) == pytest.approx(-0.5, rel=1e-14)


def test_expected_advantage_has_mean_zero_and_unit_scale():
    p, success = np.array([0.5, 0.5]), np.array([0.6, 0.2])
    np.testing.assert_allclose(expected_advantage(p, success), np.array([0.2, -0.2]) / np.sqrt(0.24), rtol=1e-14)


def test_the_covariance_is_the_entropy_change_of_a_small_step():
    """Theorem 1 where nothing is sampled: one state, expected gradient, advantage without standard deviation."""
    config = Config(env="exact", logit_std=1.0, lr=1e-4, rollouts=1)
    run = simulate(config, [0, 1], keep_policies=True)
    p = run.policies[:, 0]
    advantage = run.success - (p * run.success).sum(-1, keepdims=True)
    cov = covariance(p, np.log(p), p * advantage).mean(-1)
    np.testing.assert_allclose(-np.diff(run.entropy)[:, 0], 1e-4 * cov, rtol=1e-3)


def test_covariances_are_those_of_their_rollouts():
    found = covariances(CONFIG, [0, 1], 3)
    run = simulate(CONFIG, [0, 1], keep_policies=True)
    np.testing.assert_array_equal(found.rollout, [0, 6, 11])
    np.testing.assert_allclose(found.drop[1], run.entropy[:, 6] - run.entropy[:, 7], rtol=1e-14)
    np.testing.assert_allclose(found.accuracy[2].mean(-1), run.reward[:, 11], rtol=1e-12)
    p = run.policies[:, 6]
    advantage = expected_advantage(p, run.success)
    np.testing.assert_allclose(found.natural[1], (p * np.log(p) * advantage).sum(-1), rtol=1e-10)
    assert found.policy_gradient.shape == (3, 2, 3)
