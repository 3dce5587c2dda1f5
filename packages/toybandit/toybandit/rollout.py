"""One rollout of all runs: arms, rewards and advantages, either sampled or with every outcome enumerated."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from entrostat.advantages import Advantage
from entrostat.numbers.segments import Segments

from .environments import Environment
from .episodes import inverse_cdf, sample_episodes
from .luck import Luck
from .policy import Policy, per_prompt


@dataclass(frozen=True, eq=False, kw_only=True)
class Rollout:
    """n tokens of each of S prompts, in all R runs; the tokens of a response are adjacent."""

    arm: Tensor
    """Arm of each token, int64 (R, S, n), numbered across all rows of its prompt."""
    reward: Tensor
    """Reward of each token's response that training sees, 0 or 1, (R, S, n): flipped where label noise flips it."""
    advantage: Tensor
    """Advantage of each token, (R, S, n)."""
    frequency: Tensor | None = None
    """Frequency of each token relative to the mean, (R, S, n); None if tokens are samples, which all count 1."""
    node: Tensor | None = None
    """Node of each token in its prompt's tree, int64 (R, S, n); None if a prompt has one state."""


class MiniBatch(NamedTuple):
    """Prompts of one update, with their tokens."""

    rollout: Rollout
    fixed: dict[str, Tensor]
    """Token fields that stay the same in every pass, (R, S·n) or (S·n,) each."""
    of_row: Tensor | None
    """Features of the prompts' rows, (rows, W); None if rows have logits of their own."""
    rows: slice
    """Rows of the prompts in the table of a rollout."""


def mini_batches(
    rollout: Rollout, fixed: dict[str, Tensor], of_row: Tensor | None, rows: int, parts: int
) -> list[MiniBatch]:
    """Divide a rollout by prompts into equal parts, in order. rows: those of all its prompts."""
    if parts == 1:
        return [MiniBatch(rollout, fixed, of_row, slice(0, rows))]
    tables = {name: x.chunk(parts, 1) for name, x in vars(rollout).items() if x is not None}
    tokens = {name: x.chunk(parts, -1) for name, x in fixed.items()}
    features = [None] * parts if of_row is None else of_row.chunk(parts)
    width = rows // parts
    return [
        MiniBatch(
            Rollout(**{name: x[part] for name, x in tables.items()}),
            {name: x[part] for name, x in tokens.items()},
            features[part],
            slice(part * width, (part + 1) * width),
        )
        for part in range(parts)
    ]


def respond(
    p: Tensor,
    success: Tensor,
    draw: Tensor,
    reward_draw: Tensor,
    advantage: Advantage,
    groups: Segments,
    flipped: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return arms, Bernoulli rewards and advantages, (R, S, G) each, from tables (R, S, K) and uniform draws (R, S, G).

    flipped: True where label noise flips the reward, bool (R, S, G); None without label noise.
    Draws stay float64 whatever the tables' dtype: in float32 the largest would round to 1 and miss every probability.
    """
    arm = inverse_cdf(p.cumsum(-1), draw)
    return arm, *judged(success.gather(-1, arm), reward_draw, advantage, groups, flipped)


Respond = Callable[[Tensor, Tensor, Tensor, Tensor, Advantage, Segments, Tensor | None], tuple[Tensor, Tensor, Tensor]]


def sample_rollout(
    policy: Policy,
    success: Tensor,
    advantage: Advantage,
    luck: Luck,
    step: int,
    respond: Respond = respond,
    noise: float = 0.0,
) -> Rollout:
    """Draw G arms and their Bernoulli rewards in every state. noise: probability that a reward is flipped."""
    draws = luck("arm", step), luck("reward", step)
    groups = groups_of(*draws[0].shape[1:], success.device)
    arm, reward, value = respond(policy.p, success, *draws, advantage, groups, flips(luck, step, noise))
    return Rollout(arm=arm, reward=reward, advantage=value)


def sample_responses(
    policy: Policy, success: Tensor, environment: Environment, advantage: Advantage, luck: Luck, step: int
) -> Rollout:
    """Draw a rollout with responses of L tokens. A response succeeds with the mean probability of its arms, or with
    the product if that is `joint`."""
    node, choice = sample_episodes(policy, environment, luck, step)
    arm = node * environment.arms + choice
    of_arm = per_prompt(success, environment.states).gather(-1, arm.flatten(2)).reshape(arm.shape)
    of_response = of_arm.prod(-1) if environment.joint else of_arm.mean(-1)
    reward, value = judge_responses(of_response, advantage, luck, step, environment.label_noise)
    spread = (x.repeat_interleave(environment.length, -1) for x in (reward, value))
    return Rollout(arm=arm.flatten(2), node=node.flatten(2), **dict(zip(("reward", "advantage"), spread, strict=True)))


def judge_responses(
    probability: Tensor, advantage: Advantage, luck: Luck, step: int, noise: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return Bernoulli rewards of responses and their advantages, (R, S, G) each, from their success probabilities.

    noise: probability that a reward is flipped.
    """
    groups = groups_of(*probability.shape[1:], probability.device)
    return judged(probability, luck("reward", step), advantage, groups, flips(luck, step, noise))


def judged(
    probability: Tensor, draw: Tensor, advantage: Advantage, groups: Segments, flipped: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return rewards and advantages as `judge_responses` does, from given uniform draws (R, S, G) and flips."""
    reward = (draw < probability).to(probability.dtype)
    if flipped is not None:
        reward = torch.where(flipped, 1 - reward, reward)
    return reward, advantage(reward.flatten(1), groups).reshape(reward.shape)


def flips(luck: Luck, step: int, noise: float) -> Tensor | None:
    """Return True where label noise flips a reward, bool (R, S, G); None, without a draw, if there is no noise.

    The flips have random numbers of their own: the rewards before they are flipped do not depend on the noise.
    """
    return None if noise == 0 else luck("label noise", step) < noise


@lru_cache(maxsize=64)
def groups_of(prompts: int, group: int, device: torch.device) -> Segments:
    """Return the groups of S·G responses that answer the same prompt."""
    groups = Segments(torch.arange(prompts, device=device).repeat_interleave(group))
    assert groups.size.numel() == prompts  # computes the lazy size once, before it is compiled
    return groups


def enumerate_rollout(policy: Policy, success: Tensor) -> Rollout:
    """Return every arm rewarded and every arm not rewarded, as 2K tokens with probabilities p·q and p·(1−q).

    The advantage is the reward minus the state's expected reward ρ = Σ p·q.
    success: q, label noise included if there is any (`problem.with_label_noise`).
    """
    arms = success.shape[-1]
    arm = torch.arange(arms).repeat(2).expand(*success.shape[:-1], 2 * arms)
    reward = torch.cat([torch.ones_like(success), torch.zeros_like(success)], -1)
    probability = torch.cat([policy.p * success, policy.p * (1 - success)], -1)
    expected = (policy.p * success).sum(-1, keepdim=True)
    return Rollout(arm=arm, reward=reward, advantage=reward - expected, frequency=2 * arms * probability)
