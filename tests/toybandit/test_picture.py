"""The picture: GRPO collapses and finds nothing, a thermostat does not; the verdict is of the seeds."""

import numpy as np
import pytest

from toybandit import picture
from toybandit.picture import CHOICES, HELD, NEITHER, PLAIN, SEEDS, TARGET, K, Side


@pytest.fixture(scope="module")
def runs():
    return picture.sides()


def test_one_collapses_and_one_does_not_in_every_seed(runs):
    plain, held = runs[PLAIN], runs[HELD]
    assert plain.entropy.shape == (len(SEEDS), 261)
    assert plain.entropy[:, -1].max() < 0.1 < plain.entropy[:, 0].min()
    np.testing.assert_allclose(held.entropy[:, -100:], TARGET, atol=0.05)
    assert plain.passed[:, -1].max() < 0.1
    assert held.passed[:, -1].min() > 0.8
    assert plain.reward[:, -1].max() < 0.6 < held.reward[:, -1].min()


def test_both_start_from_one_policy_and_bars_are_in_order(runs):
    first, other = (run.policy[0] for run in runs.values())
    np.testing.assert_array_equal(first, other)
    np.testing.assert_allclose([run.policy.sum(-1) for run in runs.values()], 1)
    assert first.argmax() == 0
    assert first[-1] == pytest.approx(1 / 400, rel=0.2)
    assert runs[PLAIN].policy[-1].argmax() == 0
    assert runs[HELD].policy[-1].argmax() == len(first) - 1


@pytest.mark.slow
def test_the_reward_is_highest_at_the_first_target(runs):
    ends = {target: picture.side(HELD, target).reward[:, -1].mean() for target in (0.4, 2.0)}
    assert runs[HELD].reward[:, -1].mean() > max(ends.values())


@pytest.mark.parametrize(("gap", "spread", "right"), [(0.5, 0.1, HELD), (-0.5, 0.1, PLAIN), (0.02, 0.1, NEITHER)])
def test_the_verdict_is_that_of_the_seeds(gap, spread, right):
    noise = spread * np.resize([1.0, -1.0], (len(SEEDS), 1))
    passed = {PLAIN: np.full((len(SEEDS), 1), 0.5), HELD: 0.5 + gap * (1 + noise) + noise * (right == NEITHER)}
    blank = np.zeros((len(SEEDS), 1))
    named = {name: Side(entropy=blank, passed=p, reward=blank, policy=blank) for name, p in passed.items()}
    found, words = picture.verdict(named)
    assert found == right in CHOICES
    assert words.startswith(f"{right[0].upper()}{right[1:]}: pass@{K} is {passed[HELD].mean():.2f} under thermostat")
