"""aer against numbers worked out by hand."""

from math import nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import StepStats, Tokens, make

LENGTHS = torch.tensor([1, 2, 1, 3])
SEQUENCE = torch.repeat_interleave(torch.tensor([7, 3, 5, 1]), LENGTHS)
GROUP = torch.repeat_interleave(torch.tensor([2, 2, 2, 9]), LENGTHS)
REWARD = torch.repeat_interleave(torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64), LENGTHS)


def tokens(reward=REWARD) -> Tokens:
    zero = torch.zeros(7, dtype=torch.float64)
    return Tokens(
        logp=zero, old_logp=zero, advantage=zero, entropy=zero + 1, reward=reward, seq_id=SEQUENCE, group_id=GROUP
    )


def coefficients(reward=REWARD, **settings) -> list[float]:
    controller = make("aer", target=0.5, delta=0.1, coef_max=1.0, **settings)
    controller.observe(StepStats(entropy=0.4))
    return controller.plan(tokens(reward)).entropy_coef.tolist()


def test_the_bonus_is_larger_on_prompts_that_are_solved_less_often():
    """One of three responses of the first prompt is right, whatever their lengths, and the only one of the second."""
    assert coefficients() == pytest.approx([0.1 * 2 / 3] * 4 + [0.0] * 3)
    assert coefficients(rho=0.5) == pytest.approx([0.1 / 3] * 4 + [0.0] * 3)
    assert coefficients(rho=2.0) == pytest.approx([0.1 * 5 / 6] * 4 + [0.05] * 3)
    assert coefficients(torch.zeros(7, dtype=torch.float64)) == pytest.approx([0.1] * 7)


def moved(entropies, **settings) -> list[float]:
    controller = make("aer", **{"target": 0.5, "delta": 0.25, "coef_max": 0.6, **settings})
    found = []
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
        found.append(float(controller.parts[0].coef))
    return found


def test_the_coefficient_follows_the_entropy():
    assert moved([0.4, 0.4, 0.4, 0.6, nan, 0.5]) == pytest.approx([0.25, 0.5, 0.6, 0.35, 0.35, 0.35])
    assert moved([0.6, 0.4]) == [0.0, 0.25]


def test_the_published_target_is_a_share_of_the_initial_entropy():
    """0.4 times 1.0: the coefficient rises only below it."""
    given_target = {"target": "0.4x"}
    assert moved([1.0, 0.41, 0.39, 0.39], **given_target) == pytest.approx([0.0, 0.0, 0.25, 0.5])
    assert str(make("aer").parts[0].schedules["target"]) == "0.4x"


@given(st.lists(st.floats(0, 1), max_size=30), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_the_bonus_is_never_negative_and_at_most_the_coefficient(entropies, rewards):
    controller = make("aer", target=0.5, delta=0.1, coef_max=0.3)
    for entropy in entropies:
        controller.observe(StepStats(entropy=entropy))
    reward = torch.repeat_interleave(torch.tensor(rewards, dtype=torch.float64), LENGTHS)
    found = controller.plan(tokens(reward)).entropy_coef
    assert bool(((found >= 0) & (found <= controller.parts[0].coef + 1e-15)).all())


def test_two_loops_on_the_bonus_are_refused():
    with pytest.raises(ValueError, match="both closed loops on the entropy bonus"):
        make("aer+adaptive_entropy", **{"aer.target": 0.5, "adaptive_entropy.target": 0.5})
