"""Covariances of a run against theorem 1's formula, and at starts that know less."""

import numpy as np
import pytest
import torch

from entrostat.entropy_change import natural_policy_gradient, policy_gradient
from toybandit.claims.checks import above
from toybandit.claims.counts import count
from toybandit.claims.covariance_sign import alike, course, covariance, positive
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=4, states=24, rollouts=1)


def test_two_arms_by_hand():
    """Arms ¾, ¼ with values 1 and −3, whose mean is 0: Cov(log p, value) = ¾·ln ¾ − ¾·ln ¼ = ¾·ln 3."""
    found = covariance(np.array([0.75, 0.25]), np.array([1.0, -3.0]))
    assert found == pytest.approx(0.75 * np.log(3))


def test_it_is_what_the_theorems_have():
    generator = torch.Generator().manual_seed(0)
    logp = torch.log_softmax(2 * torch.randn(5, 8, generator=generator, dtype=torch.float64), -1)
    advantage = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    p = logp.exp()
    np.testing.assert_allclose(covariance(p.numpy(), (p * advantage).numpy()), -policy_gradient(logp, advantage))
    np.testing.assert_allclose(covariance(p.numpy(), advantage.numpy()), -natural_policy_gradient(logp, advantage))


def test_the_fall_of_a_run_is_the_entropy_lost():
    found = course(EFFORT, 0.5, rollouts=12)
    assert found.with_p.shape == found.without.shape == found.fall.shape == (4, 12)
    assert found.fall.sum(1).min() > 0


def test_a_policy_that_prefers_wrong_arms_starts_below_zero():
    first = {tilt: course(EFFORT, tilt, rollouts=3).with_p[:, 0].mean() for tilt in (0.5, 0.0, -0.5)}
    assert first[0.5] > first[0.0] > first[-0.5]
    assert first[0.5] > 0 > first[-0.5]


def test_one_run_with_a_covariance_of_zero_is_enough():
    smallest = np.array([0.1, 0.2, 0.15])
    assert positive(count(smallest <= 0), smallest).holds
    assert above(np.array([0.0, 0.2, 0.15])).holds
    assert not positive(count(np.array([True, False, False])), np.array([0.0, 0.2, 0.15])).holds


def test_curves_in_proportion_are_alike():
    x = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    np.testing.assert_allclose(alike(x, 2 * x), 1)
