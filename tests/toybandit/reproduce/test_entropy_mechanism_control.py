"""Figures of The Entropy Mechanism on holding entropy."""

from dataclasses import replace

import numpy as np
import pytest

from toybandit.reproduce import FIGURES, QUICK, Effort
from toybandit.reproduce.curves import train
from toybandit.reproduce.entropy_mechanism_control import roughness

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured():
    return {number: FIGURES[f"entropy-mechanism-{number}"](QUICK) for number in (5, 6, 13, 14)}


def entropies(data, prefix=""):
    return [v for name, v in data.numbers.items() if name.startswith(prefix) and name.endswith("/entropy")]


@pytest.mark.slow
@pytest.mark.parametrize("number", [5, 6, 13, 14])
def test_pictures_are_their_tables(number, measured, drawn_from_its_table):
    assert drawn_from_its_table(FIGURES[f"entropy-mechanism-{number}"], measured[number])


def test_covariance_methods_hold_entropy_and_pay_for_it(measured):
    numbers = measured[5].numbers
    for method in ("Clip-Cov", "KL-Cov"):
        assert numbers[f"{method}/entropy"] > numbers["Clip-Higher/entropy"] > numbers["GRPO/entropy"]
        assert numbers[f"{method}/reward"] < numbers["GRPO/reward"]


@pytest.mark.parametrize("method", ["Clip-Cov", "KL-Cov"])
def test_more_strength_more_entropy(method, measured):
    held = entropies(measured[6], method)
    assert len(held) > 3
    assert held == sorted(held)


def test_kl_cov_is_not_the_steadier(measured):
    assert measured[6].numbers["KL-Cov/roughness"] > measured[6].numbers["Clip-Cov/roughness"]


@pytest.mark.parametrize("number", [13, 14])
def test_regularisation_raises_entropy_and_costs_reward(number, measured):
    held = entropies(measured[number])
    assert held[1:] == sorted(held[1:])
    assert held[-1] > 2 * held[0]
    rewards = [value for name, value in measured[number].numbers.items() if name.endswith("/reward")]
    assert rewards[-1] < rewards[0] - 0.01


def test_roughness_by_hand():
    run = train(Effort(runs=1, scale=0), states=2, rollouts=6)
    entropy = np.array([[9.0, 0, 5, 1, 1, 2, 2]])  # steps of the last third: 1 and 0
    assert roughness(replace(run, entropy=entropy)) == pytest.approx([0.5])
