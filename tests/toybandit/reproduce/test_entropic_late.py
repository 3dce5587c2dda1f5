"""EntroPIC, figures 10 and 13 and table 5. Training runs have QUICK effort: 24 states, 120 rollouts, 2 seeds."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.reproduce.entropic_late import (
    LateEntropic,
    coefficient,
    plug_in_late,
    plugged_in,
    right_probability,
    targets,
)
from toybandit.reproduce.registry import QUICK

pytestmark = pytest.mark.slow


def test_control_sleeps_until_its_start():
    run = plugged_in(QUICK, "noisy", 20)
    plain = simulate(Config(states=24, rollouts=30), range(2))
    assert (run.entropy[:, :21] == plain.entropy[:, :21]).all()
    assert (run.entropy[:, 21] != plain.entropy[:, 21]).all()
    assert (run.metrics["entropic/alpha"][:, :20] == 0).all()
    assert LateEntropic(start=20).start == 20


def test_late_control_brings_the_entropy_back_but_not_with_0_1_rewards(drawn_from_its_table):
    data = plug_in_late(QUICK)
    assert data.numbers["entropy at the start, 0.6, noisy"] < 0.5
    assert abs(data.numbers["error, 0.3, noisy"]) < 0.05
    assert data.numbers["error, 0.6, det"] < -0.3
    assert drawn_from_its_table(plug_in_late, data)


def test_the_coefficient_falls_with_the_entropy(drawn_from_its_table):
    data = coefficient(QUICK)
    for name in ("off-policy", "off-policy, logit std 1"):
        assert data.numbers[f"correlation with the entropy, {name}"] > 0.5
        assert data.numbers[f"α, {name}"] < 0
    assert drawn_from_its_table(coefficient, data)


def test_right_probability_by_hand():
    run = simulate(Config(states=2, arms=2, right_arms=1, rollouts=1), range(1))
    right = run.success == 0.6
    np.testing.assert_allclose(right_probability(run), run.probabilities[right].reshape(1, 2))


def test_pass_at_n_rises_with_the_target(drawn_from_its_table):
    data = targets(QUICK)
    assert data.numbers["pass@8, 0.05"] < data.numbers["pass@8, 1"]
    assert data.numbers["states on wrong arms, 0.05"] > data.numbers["states on wrong arms, 1"] == 0
    assert data.numbers["pass@8, 1"] == pytest.approx(1, abs=0.01)
    assert data.numbers["avg@8, 1"] < data.numbers["avg@8, 0.6"]
    assert drawn_from_its_table(targets, data)
