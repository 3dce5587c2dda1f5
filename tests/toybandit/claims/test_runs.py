"""Settings side by side."""

import numpy as np

from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies, side_by_side

EFFORT = Effort(instances=1, runs=3, states=4, rollouts=5)


def test_settings_side_by_side_are_those_alone():
    together = side_by_side(EFFORT, {"coef": (0.0, 0.1)}, env="noisy", controller="entropy_bonus")
    assert together.shape == (2, 3, 6)
    for coef, entropy in zip((0.0, 0.1), together, strict=True):
        args = {"coef": coef}
        alone = entropies(EFFORT, env="noisy", controller="entropy_bonus", controller_args=args)
        np.testing.assert_allclose(entropy, alone, rtol=0, atol=1e-12)


def test_a_claim_may_ask_for_another_size():
    assert entropies(EFFORT, env="noisy", rollouts=2).shape == (3, 3)
