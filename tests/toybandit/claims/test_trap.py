"""The trap and its ways out."""

from types import SimpleNamespace

import numpy as np

from toybandit import ENVIRONMENTS
from toybandit.claims.registry import Effort
from toybandit.claims.trap import FEW, FIXED, GRPO, HOLDING, changed_arm, escaped, trained

EFFORT = Effort(instances=1, runs=4, states=1, rollouts=1)
SMALL = {"states": 6, "rollouts": 200, "lr": 3.0}


def test_a_state_has_escaped_once_its_rare_arm_is_likelier_than_the_tempting_one():
    p = np.array([[[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [[0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]])
    assert escaped(SimpleNamespace(probabilities=p)).tolist() == [0.5, 1.0]


def test_another_arm():
    trap = changed_arm(2.0, 0.3)(ENVIRONMENTS["trap"])
    assert (trap.logits[0][:3], trap.success[0][:3]) == ((2.0, 2.0, 1.0), (0.5, 0.3, 0.3))
    assert changed_arm()(ENVIRONMENTS["trap"]) == ENVIRONMENTS["trap"]


def test_nothing_is_lost_for_good_if_the_coefficient_follows():
    """After 400 rollouts of GRPO the thermostat still finds the rare arm; a constant bonus waits for the entropy."""
    late = {name: escaped(trained(EFFORT, name, before=400, **SMALL)).mean() for name in (GRPO, HOLDING, FIXED)}
    assert trained(EFFORT, GRPO, **SMALL | {"rollouts": 400}).entropy[:, -1].mean() < 0.1
    assert late[GRPO] <= FEW
    assert late[HOLDING] > 0.4
    assert late[FIXED] < late[HOLDING] / 2
