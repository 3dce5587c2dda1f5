"""What is held at the end, and arrays on disk."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.trajectory import last_third


def test_saved_arrays_are_those_of_the_trajectory(tmp_path):
    config = Config(controller="entropic", states=3, rollouts=4)
    trajectory = simulate(config, [6, 8], predict=True)
    trajectory.save(tmp_path / "trajectory.npz")
    with np.load(tmp_path / "trajectory.npz") as arrays:
        assert np.array_equal(arrays["seeds"], [6, 8])
        for name in ("entropy", "reward", "probabilities", "success", "predicted"):
            assert np.array_equal(arrays[name], getattr(trajectory, name))
        assert np.array_equal(arrays["entropic/alpha"], trajectory.metrics["entropic/alpha"])


@pytest.mark.parametrize(("length", "kept"), [(1, [0]), (2, [1]), (3, [2]), (7, [5, 6]), (9, [6, 7, 8])])
def test_the_last_third(length, kept):
    np.testing.assert_array_equal(last_third(np.arange(length)), kept)
    np.testing.assert_array_equal(last_third(np.arange(length)[None]), [kept])


@pytest.mark.parametrize(("rollouts", "held"), [(1, 1), (8, 2), (9, 3)])
def test_what_is_held_is_that_of_the_last_third_of_the_rollouts(rollouts, held):
    run = simulate(Config(states=3, rollouts=rollouts), range(2))
    np.testing.assert_array_equal(run.entropy_held, run.entropy[:, -held:].mean(1))
    np.testing.assert_array_equal(run.reward_held, run.reward[:, -held:].mean(1))
