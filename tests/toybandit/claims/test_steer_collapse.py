"""Where a run is looked at, and runs under the weights of 1."""

import numpy as np
import pytest

from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies
from toybandit.claims.steer_collapse import BOUNDS, FREE, FREELY, tenth, weighted

EFFORT = Effort(instances=1, runs=3, states=8, rollouts=10)


def test_tenths_of_a_run():
    entropy = np.arange(101.0).reshape(1, -1)
    assert tenth(entropy, 1.0).tolist() == [pytest.approx(np.arange(91, 101).mean())]
    assert tenth(entropy, 0.5).tolist() == [pytest.approx(50.5, abs=1)]


def test_weights_of_one_are_grpo():
    assert BOUNDS[FREELY] == FREE
    grpo = entropies(EFFORT, env="noisy", controller="grpo", controller_args=FREE)
    np.testing.assert_array_equal(weighted(EFFORT, 1.0, FREE), grpo)
    assert not np.array_equal(weighted(EFFORT, 0.2, FREE), grpo)
