"""Rollouts: sampled frequencies, enumerated expectations."""

from dataclasses import replace

import pytest
import torch

from entrostat import get_advantage
from toybandit.environments import NOISY, Environment
from toybandit.luck import Luck
from toybandit.policy import Policy, logit_gradient
from toybandit.problem import draw_problem, with_label_noise
from toybandit.rollout import enumerate_rollout, sample_responses, sample_rollout

SEEDS = torch.arange(2)
LOGITS, SUCCESS = draw_problem(NOISY, SEEDS, torch.float64)
POLICY = Policy(LOGITS)


def test_arms_and_rewards_occur_as_often_as_they_should():
    group = 4096
    rollout = sample_rollout(POLICY, SUCCESS, get_advantage("grpo"), Luck(SEEDS, 64, group), step=5)
    counts = torch.nn.functional.one_hot(rollout.arm, 16).double().mean(2)
    z = (counts - POLICY.p) / (POLICY.p * (1 - POLICY.p) / group).sqrt()
    assert 0.9 < z[POLICY.p > 10 / group].square().mean() < 1.1
    rate = rollout.reward.mean(-1)
    expected = (POLICY.p * SUCCESS).sum(-1)
    z = (rate - expected) / (expected * (1 - expected) / group).sqrt()
    assert 0.7 < z.square().mean() < 1.3
    assert abs(z.mean()) < 0.3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_draw_is_below_one(dtype):
    """In float32 it would be 1: above the probability of what is certain, and on an arm that is never taken."""

    def luck(purpose: str, rollout: int) -> torch.Tensor:
        return torch.full((1, 2, 3), 1 - 2.0**-53, dtype=torch.float64)

    tree = Environment(states=2, arms=4, length=2, branching=2, group=3, right_arms=4)
    p = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=dtype)
    advantage = get_advantage("grpo")
    flat = sample_rollout(Policy(p.log().expand(1, 2, 4)), torch.ones(1, 2, 4, dtype=dtype), advantage, luck, 0)
    rows = tree.rows
    deep = sample_responses(
        Policy(p.log().expand(1, rows, 4)), torch.ones(1, rows, 4, dtype=dtype), tree, advantage, luck, 0
    )
    assert (flat.arm == 1).all()
    assert (deep.arm % 4 == 1).all()
    for rollout in (flat, deep):
        assert (rollout.reward == 1).all()
        assert rollout.reward.dtype == rollout.advantage.dtype == dtype


def test_advantages_are_of_the_states_own_group():
    rollout = sample_rollout(POLICY, SUCCESS, get_advantage("dr_grpo"), Luck(SEEDS, 64, 16), step=0)
    torch.testing.assert_close(rollout.advantage, rollout.reward - rollout.reward.mean(-1, keepdim=True))


def test_steps_and_seeds_have_their_own_numbers():
    first = sample_rollout(POLICY, SUCCESS, get_advantage("grpo"), Luck(SEEDS, 64, 16), step=0)
    second = sample_rollout(POLICY, SUCCESS, get_advantage("grpo"), Luck(SEEDS, 64, 16), step=1)
    alone = sample_rollout(Policy(LOGITS[1:]), SUCCESS[1:], get_advantage("grpo"), Luck(SEEDS[1:], 64, 16), step=0)
    assert not torch.equal(first.arm, second.arm)
    assert torch.equal(first.arm[1:], alone.arm)
    assert torch.equal(first.reward[1:], alone.reward)


def test_enumerated_outcomes_give_the_gradient_of_the_expected_reward():
    rollout = enumerate_rollout(POLICY, SUCCESS)
    assert rollout.frequency is not None
    torch.testing.assert_close(rollout.frequency.mean(-1), torch.ones(2, 64, dtype=torch.float64))
    assert (rollout.frequency * rollout.advantage).sum(-1).abs().max() < 1e-13
    weight = (rollout.frequency * rollout.advantage / 32).flatten(1)
    logits = LOGITS.clone().requires_grad_()
    (torch.softmax(logits, -1) * SUCCESS).sum().backward()
    assert logits.grad is not None
    torch.testing.assert_close(logit_gradient(POLICY, rollout.arm, weight, None), logits.grad, rtol=0, atol=1e-15)


def test_label_noise_flips_single_rewards_and_nothing_else():
    """As a loop over responses. Of 524,288 rewards, a share of .2 ± .00055 is flipped."""
    luck, noise = Luck(SEEDS, 64, 4096), 0.2
    clean, noisy = (sample_rollout(POLICY, SUCCESS, get_advantage("dr_grpo"), luck, 3, noise=e) for e in (0.0, noise))
    assert torch.equal(clean.arm, noisy.arm)
    draws = luck("label noise", 3)[1, 5].tolist()
    rewards = clean.reward[1, 5].tolist()
    flipped = [1 - reward if draw < noise else reward for reward, draw in zip(rewards, draws, strict=True)]
    assert noisy.reward[1, 5].tolist() == flipped
    assert float((clean.reward != noisy.reward).double().mean()) == pytest.approx(noise, abs=5 * 0.00055)
    seen = with_label_noise((POLICY.p * SUCCESS).sum(-1), noise)
    z = (noisy.reward.mean(-1) - seen) / (seen * (1 - seen) / 4096).sqrt()
    assert 0.7 < z.square().mean() < 1.3
    torch.testing.assert_close(noisy.advantage, noisy.reward - noisy.reward.mean(-1, keepdim=True))


def test_label_noise_flips_whole_responses():
    tree = Environment(states=2, arms=4, length=3, branching=2, group=64, right_arms=2, label_noise=0.3)
    logits, success = draw_problem(tree, SEEDS, torch.float64)
    luck = Luck(SEEDS, 2, 64)
    clean, noisy = (
        sample_responses(Policy(logits), success, replace(tree, label_noise=e), get_advantage("grpo"), luck, 1)
        for e in (0.0, 0.3)
    )
    flipped = (luck("label noise", 1) < 0.3).repeat_interleave(3, -1)
    assert torch.equal(clean.reward != noisy.reward, flipped)


def test_without_label_noise_no_number_is_drawn_for_it():
    asked = []

    def luck(purpose: str, rollout: int) -> torch.Tensor:
        asked.append(purpose)
        return torch.full((2, 64, 4), 0.5, dtype=torch.float64)

    sample_rollout(POLICY, SUCCESS, get_advantage("grpo"), luck, 0)
    assert asked == ["arm", "reward"]


def test_enumerated_outcomes_include_label_noise():
    """Each pair's probability is p·q' with q' = q(1 − 2e) + e; the expected gradient is 1 − 2e of the clean one."""
    clean, noisy = (enumerate_rollout(POLICY, with_label_noise(SUCCESS, e)) for e in (0.0, 0.2))
    for arm in range(16):
        q = SUCCESS[..., arm] * 0.8 + (1 - SUCCESS[..., arm]) * 0.2
        torch.testing.assert_close(noisy.frequency[..., arm], 32 * POLICY.p[..., arm] * q)
        torch.testing.assert_close(noisy.frequency[..., 16 + arm], 32 * POLICY.p[..., arm] * (1 - q))
    step = [logit_gradient(POLICY, x.arm, (x.frequency * x.advantage / 32).flatten(1), None) for x in (clean, noisy)]
    torch.testing.assert_close(step[1], 0.6 * step[0], rtol=0, atol=1e-15)
