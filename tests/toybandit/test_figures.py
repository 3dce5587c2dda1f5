"""The figure of a run."""

import numpy as np
from matplotlib.image import imread

from toybandit import Config, simulate
from toybandit.figures import entropy_figure


def test_figure_changes_with_target(tmp_path):
    images = []
    for target in (None, 0.6):
        trajectory = simulate(Config(controller="entropic", target=target, states=3, rollouts=4), [0, 1])
        entropy_figure(trajectory, tmp_path / "entropy.png")
        images.append(imread(tmp_path / "entropy.png"))
    assert images[0].shape[:2] == (750, 1050)
    assert not np.array_equal(*images)
