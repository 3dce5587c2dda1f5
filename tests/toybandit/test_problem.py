"""Initial policies and rewards."""

from dataclasses import replace

import pytest
import torch

from toybandit.environments import ENVIRONMENTS, NOISY
from toybandit.policy import Policy
from toybandit.problem import coupling_kernel, draw_problem

SEEDS = torch.arange(16)


def test_noisy_starts_where_it_should():
    logits, success = draw_problem(NOISY, SEEDS, torch.float64)
    assert logits.shape == success.shape == (16, 64, 16)
    assert logits.std().item() == pytest.approx(2.0, rel=0.02)
    assert Policy(logits).entropy.mean().item() == pytest.approx(1.65, abs=0.05)
    assert torch.equal((success == 0.6).sum(-1), torch.full((16, 64), 4))
    assert torch.equal((success == 0.3).sum(-1), torch.full((16, 64), 12))


@pytest.mark.parametrize(("env", "right", "wrong"), [("on", 0.6, 0.3), ("pure", 0.5, 0.5), ("det", 1.0, 0.0)])
def test_rewards_of_environments(env, right, wrong):
    _, success = draw_problem(ENVIRONMENTS[env], SEEDS[:1], torch.float64)
    assert set(success.unique().tolist()) == {right, wrong}


def test_exact_is_one_uniform_state():
    logits, success = draw_problem(ENVIRONMENTS["exact"], SEEDS[:2], torch.float64)
    assert logits.shape == (2, 1, 16)
    assert not logits.any()
    assert torch.equal(success.sort(-1).values[0, 0], torch.tensor([0.4] * 15 + [0.6], dtype=torch.float64))


def test_likely_arms_are_right_more_often_as_the_tilt_grows():
    def mass(tilt: float) -> float:
        logits, success = draw_problem(replace(NOISY, right_tilt=tilt), SEEDS, torch.float64)
        return (Policy(logits).p * (success == 0.6)).sum(-1).mean().item()

    assert mass(0.0) == pytest.approx(4 / 16, abs=0.03)
    assert mass(0.0) + 0.1 < mass(0.5) < mass(1.0) - 0.05


def test_right_arms_can_start_ahead():
    logits, success = draw_problem(replace(NOISY, right_logit=3.0), SEEDS[:1], torch.float64)
    plain, _ = draw_problem(NOISY, SEEDS[:1], torch.float64)
    assert torch.equal(logits, plain + 3.0 * (success == 0.6))


def test_a_run_depends_on_its_own_seed():
    together = draw_problem(NOISY, torch.tensor([3, 9]), torch.float64)
    alone = draw_problem(NOISY, torch.tensor([9]), torch.float64)
    assert torch.equal(together.logits[1:], alone.logits)
    assert torch.equal(together.success[1:], alone.success)
    assert not torch.equal(together.logits[0], together.logits[1])


def test_kernel():
    assert coupling_kernel(NOISY, torch.float64) is None
    kernel = coupling_kernel(replace(NOISY, coupling=0.3, states=3), torch.float64)
    expected = [[1.0, 0.3, 0.3], [0.3, 1.0, 0.3], [0.3, 0.3, 1.0]]
    torch.testing.assert_close(kernel, torch.tensor(expected, dtype=torch.float64))
