"""Whether a target is held, by whom, and where."""

import pytest

from toybandit.claims.feedback import GOAL
from toybandit.claims.holding import HELD, HOLDERS, held, holds_target
from toybandit.claims.registry import Effort

EFFORT = Effort(instances=1, runs=4, states=24, rollouts=120)


@pytest.mark.parametrize("name", HOLDERS)
def test_stochastic_rewards(name):
    check, errors = holds_target(EFFORT, name, "noisy")
    assert check.holds
    assert abs(errors["noisy"].mean()) < HELD


@pytest.mark.parametrize(
    ("name", "holds"), [("adaptive entropy", True), ("Pos-Adv-Reweight", False), ("thermostat", True)]
)
def test_without_noise_only_a_bonus_holds(name, holds):
    assert holds_target(EFFORT, name, "det")[0].holds == holds


def test_entropy_starts_above_the_target():
    """Otherwise holding it would ask for nothing."""
    assert (held(EFFORT, "thermostat", "noisy")[:, 0] > GOAL + 0.5).all()
