"""The frontier against hand-computed values, and against policies that try to beat it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit.frontier import best_policy, best_reward, frontier_curve, mean_entropy, mean_reward


def binary_entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


def softmax(z: np.ndarray) -> np.ndarray:
    weight = np.exp(z - z.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True)


def test_two_arms_by_hand():
    """With q = (1, 0) and p on the right arm, the reward is p."""
    assert best_reward([[1.0, 0.0]], binary_entropy(0.8)) == pytest.approx(0.8, abs=1e-12)


def test_entropy_goes_where_it_costs_least():
    """β = log 9 in both states: p = .9 where the stakes are 1, and p = 3/4 where they are 1/2."""
    success = [[1.0, 0.0], [0.5, 0.0]]
    entropy = (binary_entropy(0.9) + binary_entropy(0.75)) / 2
    np.testing.assert_allclose(best_policy(success, entropy), [[0.9, 0.1], [0.75, 0.25]], atol=1e-9)
    assert best_reward(success, entropy) == pytest.approx((0.9 + 0.75 / 2) / 2, abs=1e-12)


def test_ends():
    success = np.array([[0.6, 0.6, 0.3, 0.3], [0.9, 0.1, 0.2, 0.2]])
    assert best_reward(success, np.log(4)) == pytest.approx(success.mean(), abs=1e-8)  # the frontier is vertical there
    ties = np.log(2) / 2
    for entropy in (0.0, ties / 2, ties):
        assert best_reward(success, entropy) == pytest.approx(0.75, abs=1e-12)
    assert best_reward(success, ties + 1e-3) < 0.75 - 1e-5


def test_no_signal_makes_every_entropy_worth_the_same():
    np.testing.assert_allclose(best_reward(np.full((3, 4), 0.5), [0.0, 0.7, np.log(4)]), 0.5, atol=1e-15)


def test_runs_are_solved_side_by_side():
    success = np.random.default_rng(0).random((5, 3, 4))
    entropy = np.linspace(0.2, 1.3, 5)
    together = best_reward(success, entropy)
    np.testing.assert_allclose(together, [best_reward(q, h) for q, h in zip(success, entropy, strict=True)], rtol=1e-14)
    curve = best_reward(success, entropy[:, None])
    assert curve.shape == (5, 5)
    np.testing.assert_allclose(np.diagonal(curve), together, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 1e-3])
def test_the_unit_of_the_reward_does_not_matter(scale):
    success = np.random.default_rng(0).random((3, 4))
    np.testing.assert_allclose(best_policy(scale * success, 0.7), best_policy(success, 0.7), atol=1e-7)
    (entropy, _), (expected, _) = frontier_curve(scale * success, 9), frontier_curve(success, 9)
    np.testing.assert_allclose(entropy, expected, atol=1e-7)


def test_curve_lies_on_the_frontier_of_all_states_together():
    success = np.random.default_rng(0).random((3, 2, 5))
    entropy, reward = frontier_curve(success, 20)
    assert entropy.shape == reward.shape == (20,)
    assert (entropy[0], reward[0]) == pytest.approx((np.log(5), success.mean()))
    assert (np.diff(entropy) < 0).all()
    np.testing.assert_allclose(reward[1:], best_reward(success.reshape(6, 5), entropy[1:]), atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 30.0))
@settings(deadline=None)
def test_no_policy_beats_it(seed, sharpness):
    rng = np.random.default_rng(seed)
    success = rng.random((4, 3, 5)).round(rng.integers(1, 4))
    policy = softmax(sharpness * rng.normal(size=success.shape) + rng.choice([0.0, sharpness]) * success)
    entropy = mean_entropy(policy)
    best = best_policy(success, entropy)
    assert (mean_reward(policy, success) <= mean_reward(best, success) + 1e-12).all()
    limit = np.log((success == success.max(-1, keepdims=True)).sum(-1)).mean(-1)
    np.testing.assert_allclose(mean_entropy(best), np.maximum(entropy, limit), atol=1e-6)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_a_step_that_keeps_the_entropy_gains_nothing(seed):
    """Stationary: along directions without first-order entropy change, the reward changes at second order only."""
    rng = np.random.default_rng(seed)
    success = rng.random((3, 4))
    p = best_policy(success, rng.uniform(0.5, 1.3))
    slope_h = -p * (np.log(p) - (p * np.log(p)).sum(-1, keepdims=True))
    slope_r = p * (success - (p * success).sum(-1, keepdims=True))
    direction = rng.normal(size=p.shape)
    direction -= slope_h * (slope_h * direction).sum() / (slope_h**2).sum()
    assert abs((slope_r * direction).sum()) < 1e-7


@pytest.mark.parametrize("entropy", [-0.1, 1.4, np.nan, [0.7, 1.4]])
def test_an_entropy_that_no_policy_has_is_refused(entropy):
    with pytest.raises(ValueError, match=r"entropy must be between 0 and log K = 1\.38629, not"):
        best_reward(np.full((2, 4), 0.5), entropy)
