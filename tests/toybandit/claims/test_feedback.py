"""The plant of the exact environment, and loops on either side of their limits."""

from math import inf

import numpy as np
import pytest
import torch

from toybandit import Config, simulate
from toybandit.claims.entropic import TARGET, TAU, resting_point
from toybandit.claims.feedback import errors, late, plant_gain, resting_logit, stability_mismatches
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=4, states=24, rollouts=120)


def test_resting_logit_has_the_target_entropy():
    logits = torch.zeros(16, dtype=torch.float64)
    logits[0] = resting_logit()
    p = torch.softmax(logits, -1)
    assert float(-(p * p.log()).sum()) == pytest.approx(TARGET, abs=1e-12)
    assert float(p[0]) == pytest.approx(float(resting_point(inf)))


def test_plant_gain_is_what_a_rollout_does():
    """Two runs at the target with α of 0 and .1, by P control with a target that is off by it."""
    base = {"env": "exact", "controller": "entropic", "right_logit": resting_logit(), "rollouts": 1, "lr": 0.5}
    args = {"kp": 1.0, "ki": 0.0, "tau": TAU}
    after = [
        simulate(Config(**base, target=TARGET - alpha, controller_args=args)).entropy[0, 1] for alpha in (0.0, 0.1)
    ]
    assert (after[0] - after[1]) / 0.1 == pytest.approx(plant_gain(0.5), rel=0.02)


@pytest.mark.parametrize(("ratio", "settles"), [(0.95, True), (1.05, False)])
def test_limit_of_the_proportional_gain(ratio, settles):
    g = plant_gain(2.0)
    args = {"kp": ratio * (4 - 0.5) / 2 / g, "ki": 0.5 / g, "tau": TAU, "alpha_max": 1e9}
    base = {"env": "exact", "controller": "entropic", "right_logit": resting_logit(), "rollouts": 600, "lr": 2.0}
    entropy = simulate(Config(**base, target=TARGET, controller_args=args)).entropy[0, -50:]
    assert bool(np.abs(entropy - TARGET).max() < 1e-3) == settles


def test_late():
    assert late(np.arange(11.0)).item() == 9.5


def test_error_of_p_control_shrinks_with_its_gain():
    found = {name: abs(values.mean()) for name, values in errors(EFFORT, "noisy", 0.0).items()}
    assert found["PI"] < found["P, Kp = 4"] < found["P, Kp = 1"] / 2


def test_the_condition_of_p_control_is_not_enough():
    wrong, of_null = stability_mismatches(2000)
    assert wrong == 0
    assert of_null > 100
