"""Settings side by side, and controllers that are lent."""

from dataclasses import dataclass

import numpy as np
import pytest

from entrostat import list_controllers
from entrostat.controller import Controller
from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies, lent, side_by_side

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


def test_a_lent_controller_is_returned():
    @dataclass(kw_only=True)
    class Idle(Controller):
        pass

    before = list_controllers()
    with lent(Idle, "idle"):
        assert "idle" in list_controllers()
        idle = entropies(EFFORT, env="noisy", controller="idle")
    assert list_controllers() == before
    np.testing.assert_array_equal(idle, entropies(EFFORT, env="noisy", controller="grpo"))


def test_a_lent_controller_does_not_hide_another():
    with pytest.raises(ValueError, match="controller 'steer' exists already"), lent(Controller, "steer"):
        pass
