"""One rollout of all runs: which arms, which rewards, which advantages. Sampled, or every outcome enumerated."""

from dataclasses import dataclass

import torch
from torch import Tensor

from entrostat.advantages import Advantage
from entrostat.draws import salt, uniform

from .policy import Policy


@dataclass(frozen=True, eq=False, kw_only=True)
class Rollout:
    """n tokens of each of S states, in all runs."""

    arm: Tensor
    """int64 (runs, S, n)."""
    reward: Tensor
    """0 or 1, (runs, S, n)."""
    advantage: Tensor
    """(runs, S, n)."""
    frequency: Tensor | None = None
    """How often a token occurs relative to the mean, (runs, S, n); None when tokens are samples, which all count 1."""


def sample_rollout(
    policy: Policy, success: Tensor, group: int, advantage: Advantage, seeds: Tensor, step: int
) -> Rollout:
    """Draw `group` arms and Bernoulli rewards of every state; seeds int64 (runs,).

    Every number is keyed by (seed, purpose, step, state, sample): controllers that are compared see the same ones.
    """
    states = success.shape[1]
    seed = seeds.reshape(-1, 1, 1)
    state = torch.arange(states).reshape(-1, 1)
    sample = torch.arange(group)
    cumulative = policy.p.cumsum(-1)
    draw = uniform(seed, salt("arm"), step, state, sample).to(cumulative)
    arm = torch.searchsorted(cumulative, draw).clamp(max=success.shape[-1] - 1)
    hit = uniform(seed, salt("reward"), step, state, sample).to(success)
    reward = (hit < success.gather(-1, arm)).to(success.dtype)
    group_id = torch.arange(states).repeat_interleave(group)
    value = advantage(reward.flatten(1), group_id).reshape(reward.shape)
    return Rollout(arm=arm, reward=reward, advantage=value)


def enumerate_rollout(policy: Policy, success: Tensor) -> Rollout:
    """Every arm rewarded and every arm not rewarded, as 2K tokens with their probabilities p·q and p·(1−q).

    The advantage is the reward minus the state's expected reward ρ = Σ p·q.
    """
    arms = success.shape[-1]
    arm = torch.arange(arms).repeat(2).expand(*success.shape[:-1], 2 * arms)
    reward = torch.cat([torch.ones_like(success), torch.zeros_like(success)], -1)
    probability = torch.cat([policy.p * success, policy.p * (1 - success)], -1)
    expected = (policy.p * success).sum(-1, keepdim=True)
    return Rollout(arm=arm, reward=reward, advantage=reward - expected, frequency=2 * arms * probability)
