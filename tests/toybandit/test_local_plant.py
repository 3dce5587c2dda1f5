"""The plant that PI control meets in a bandit."""

import numpy as np
import pytest

from entrostat.numbers import pi_control
from toybandit import Config, simulate
from toybandit.claims.entropic import alpha_star, resting_point
from toybandit.claims.feedback import plant_gain
from toybandit.local_plant import LocalPlant, held, initial_entropy, local_plant, starting_at

EXACT = Config(env="exact", lr=2.0, controller="entropic", controller_args={"tau": 0.5})
NOISY = Config(env="noisy", states=8, passes=2, controller="entropic", controller_args={"tau": 0.0})


@pytest.mark.parametrize(("config", "entropy"), [(EXACT, 1.0), (EXACT, 2.4), (NOISY, 0.4), (NOISY, 2.0)])
def test_the_run_starts_at_the_entropy_asked_for(config, entropy):
    start = starting_at(config, entropy, (3, 4))
    assert initial_entropy(start, (3, 4)) == pytest.approx(entropy, abs=1e-6)
    assert simulate(start, (3, 4)).entropy[:, 0].mean() == pytest.approx(entropy, abs=1e-6)


def test_an_entropy_that_no_policy_has():
    with pytest.raises(ValueError, match=r"an entropy of 0\.00 to 2\.77, not 3\.00"):
        starting_at(NOISY, 3.0, (0,))


def test_no_alpha_is_no_control():
    grpo = Config(env="noisy", states=8, passes=2, rollouts=1)
    assert held(NOISY, (0.0,), (0, 1))[0] == pytest.approx(np.diff(simulate(grpo, (0, 1)).entropy)[:, 0], abs=1e-14)


def test_the_plant_of_the_exact_environment_is_the_one_of_the_claims():
    """The claim measures where α cancels the drift, this one at α = 0."""
    plant = local_plant(EXACT, 1.0, (0,))
    assert plant.gain == pytest.approx(plant_gain(2.0), rel=0.05)
    rest = -float(alpha_star(resting_point(float("inf"))))
    assert plant.drift == pytest.approx(plant.gain * rest, rel=0.05)


def test_linear_theory_with_it_foretells_the_run():
    gains = {"kp": 2.8, "ki": 0.2, "tau": 0.5}
    config = Config(env="exact", lr=2.0, controller="entropic", target=1.0, controller_args=gains, rollouts=60)
    plant = local_plant(config, 1.0, (0,))
    run = simulate(starting_at(config, 1.1, (0,)), (0,)).entropy[0] - 1.0
    linear = pi_control.step_response(plant.gain, 2.8, 0.2, error=0.1, drift=plant.drift, alpha_max=1.0, steps=60)
    assert np.abs(run - linear.numpy()).max() < 0.015
    wrong = pi_control.step_response(2 * plant.gain, 2.8, 0.2, error=0.1, drift=plant.drift, alpha_max=1.0, steps=60)
    assert np.abs(run - wrong.numpy()).max() > 0.03


def test_all_tokens_are_a_weaker_grip_than_likely_ones():
    seeds = range(16)
    configs = (Config(env="noisy", lr=1.0, states=8, controller_args={"tau": tau}) for tau in (0.0, 0.5))
    every, some = (local_plant(config, 0.6, seeds) for config in configs)
    assert isinstance(every, LocalPlant)
    assert some.gain > 1.3 * every.gain > 0.01
    assert some.drift == pytest.approx(every.drift, abs=2e-3)
