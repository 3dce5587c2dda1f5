"""Arrays on disk."""

import numpy as np

from toybandit import Config, simulate


def test_saved_arrays_are_those_of_the_trajectory(tmp_path):
    config = Config(controller="entropic", states=3, rollouts=4)
    trajectory = simulate(config, [6, 8], predict=True)
    trajectory.save(tmp_path / "trajectory.npz")
    with np.load(tmp_path / "trajectory.npz") as arrays:
        assert np.array_equal(arrays["seeds"], [6, 8])
        for name in ("entropy", "reward", "probabilities", "success", "predicted"):
            assert np.array_equal(arrays[name], getattr(trajectory, name))
        assert np.array_equal(arrays["entropic/alpha"], trajectory.metrics["entropic/alpha"])
