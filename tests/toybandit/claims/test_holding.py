"""Whether a target is held, by whom, and where."""

import pytest

from toybandit.claims.feedback import GOAL, late
from toybandit.claims.holding import HELD, HOLDERS, held, holds_target
from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies

EFFORT = Effort(instances=1, runs=4, states=24, rollouts=120)


@pytest.mark.parametrize("name", HOLDERS)
def test_stochastic_rewards(name):
    check, errors = holds_target(EFFORT, name, "noisy")
    assert check.holds
    assert abs(errors["noisy"].mean()) < HELD


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "holds"),
    [("adaptive entropy", True), ("Pos-Adv-Reweight", False), ("STARE", False), ("thermostat", True)],
)
def test_without_noise_only_a_bonus_holds(name, holds):
    assert holds_target(EFFORT, name, "det")[0].holds == holds


def test_weights_on_unlikely_tokens_have_grip_where_weights_by_sign_have_none():
    """Strictly on-policy, where EntroPIC with τ = 0 is lost: claim tau-zero."""
    by_rarity = entropies(EFFORT, env="on", target=GOAL, rollouts=240, **HOLDERS["STARE"])
    by_sign = entropies(
        EFFORT, env="on", target=GOAL, rollouts=240, controller="entropic", controller_args={"tau": 0.0}
    )
    assert (abs(late(by_rarity) - GOAL) < HELD).all()
    assert (late(by_sign) < GOAL - 0.1).all()


def test_entropy_starts_above_the_target():
    """Otherwise holding it would ask for nothing."""
    assert (held(EFFORT, "thermostat", "noisy")[:, 0] > GOAL + 0.5).all()
