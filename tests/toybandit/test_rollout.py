"""Rollouts: sampled frequencies, enumerated expectations."""

import torch

from entrostat import get_advantage
from toybandit.environments import NOISY
from toybandit.luck import Luck
from toybandit.policy import Policy, logit_gradient
from toybandit.problem import draw_problem
from toybandit.rollout import enumerate_rollout, sample_rollout

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
