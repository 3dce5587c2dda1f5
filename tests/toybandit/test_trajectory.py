"""What is held at the end, and arrays on disk."""

from dataclasses import replace

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


def test_pass_at_k_by_hand():
    """Two draws in two states: the best arms, of which the first state has two, have probability .5 and .1."""
    success = np.array([[[0.6, 0.6, 0.3], [0.2, 1.0, 0.5]]])
    p = np.array([[[[0.2, 0.3, 0.5], [0.5, 0.1, 0.4]]]])
    run = replace(simulate(Config(states=2, rollouts=1), [0]), policies=p, success=success)
    np.testing.assert_allclose(run.pass_at(1), [[0.3]])
    np.testing.assert_allclose(run.pass_at(2), [[(0.75 + 0.19) / 2]])


def test_pass_at_k_rises_in_k_and_is_of_every_rollout():
    run = simulate(Config(env="trap", states=2, rollouts=3), [0, 1], keep_policies=True)
    assert run.pass_at(8).shape == (2, 4)
    assert (run.pass_at(1) < run.pass_at(8)).all()
    assert (run.pass_at(8) < run.pass_at(64)).all()


def test_pass_at_k_needs_policies_of_single_tokens():
    with pytest.raises(ValueError, match="simulate with keep_policies=True"):
        simulate(Config(states=2, rollouts=1), [0]).pass_at(8)
    with pytest.raises(ValueError, match="length must be 1"):
        simulate(Config(env="episodes", states=2, rollouts=1), [0], keep_policies=True).pass_at(8)
