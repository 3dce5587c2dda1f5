"""STEER, figures 10 and 11."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer_properties import CLASSES, DATA, MODELS, by_class, properties

pytestmark = pytest.mark.slow


def test_classes_are_thirds_of_the_states():
    rollout, entropy = by_class(QUICK)
    run = simulate(Config(states=24, rollouts=80), range(2))
    assert entropy.shape == (2, rollout.size, len(CLASSES))
    np.testing.assert_allclose(entropy.mean(2), run.entropy[:, rollout.astype(int)], rtol=1e-9)


def test_entropy_falls_smoothly_and_together(drawn_from_its_table):
    data = properties(QUICK)
    for name in (*MODELS, *DATA):
        assert data.numbers[f"kept, {name}"] < 0.6
        assert data.numbers[f"largest step, {name}"] < 0.1
    assert data.numbers["least correlation of classes"] > 0.95
    assert drawn_from_its_table(properties, data)
