"""Draws of the simulator as statistics: their frequencies, and their independence of each other.

A sound simulator with fresh seeds fails a test with a probability of about one in a million (FALSE_ALARM, shared among
the comparisons of a test); the seeds are fixed, so that a test gives the same answer every time.
"""

from functools import cache
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
import torch

from entrostat import get_advantage
from toybandit import Config, simulate
from toybandit.environments import NOISY, Environment
from toybandit.luck import Luck
from toybandit.policy import Policy, logit_gradient
from toybandit.problem import draw_problem
from toybandit.rollout import sample_rollout

FALSE_ALARM = 1e-6
P = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
"""Probability of each arm, in every state."""
Q = np.array([0.2, 0.7, 0.5, 0.9, 0.4])
"""Probability that it is rewarded."""
RUNS, ROLLOUTS, STATES, GROUP = 8, 24, 8, 16
AXES = ("run", "rollout", "state", "response")


class Draws(NamedTuple):
    """Draws of a simulation, (RUNS, ROLLOUTS, STATES, GROUP) each; scores are to have mean 0 and variance 1."""

    arm: np.ndarray
    """Arms, (…, length)."""
    reward: np.ndarray
    arms: np.ndarray
    """Scores of the arms, (…, length)."""
    rewards: np.ndarray
    """Scores of the rewards, given the arms."""


@cache
def drawn(length: int = 1) -> Draws:
    """Simulate a policy that hardly moves, and return what it drew."""
    tree = {} if length == 1 else {"length": length, "branching": 2}
    tables = {"logits": (tuple(np.log(P)),), "success": (tuple(Q),), "logit_std": 0.0, "right_arms": 1}
    sizes = {"states": STATES, "group": GROUP, "rollouts": ROLLOUTS, "passes": 1, "arms": len(P)}
    config = Config(env="custom", advantage="psr", lr=1e-12, **tables, **sizes, **tree)
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    simulate(config, range(RUNS), watch=lambda t, plan: seen.append((t.get("logp").numpy(), t.get("reward").numpy())))
    logp, reward = (np.stack(x, 1).reshape(RUNS, ROLLOUTS, STATES, GROUP, length) for x in zip(*seen, strict=True))
    arm = np.abs(logp[..., None] - np.log(P)).argmin(-1)
    chance, reward = Q[arm].mean(-1), reward[..., 0]
    middle = np.cumsum(P) - P / 2 - 0.5
    return Draws(
        arm=arm,
        reward=reward,
        arms=middle[arm] / np.sqrt(P @ middle**2),
        rewards=(reward - chance) / np.sqrt(chance * (1 - chance)),
    )


def limit(comparisons: int) -> float:
    """Return the largest |z| of so many standard normal numbers that is exceeded in one of a million tests."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / comparisons / 2)


def assert_fits(squares: float, degrees: int) -> None:
    """Assert that a sum of squares is not too large for χ² with these degrees of freedom."""
    assert torch.special.gammaincc(torch.tensor(degrees / 2), torch.tensor(squares / 2)) > FALSE_ALARM


def assert_independent(x: np.ndarray, along: tuple[int, ...]) -> None:
    """Assert that no two places on these axes together have correlated scores, over all places on the others."""
    rows = np.moveaxis(x, along, range(len(along))).reshape(int(np.prod([x.shape[axis] for axis in along])), -1)
    z = (rows @ rows.T / np.sqrt(rows.shape[1]))[np.triu_indices(len(rows), 1)]
    assert np.abs(z).max() < limit(z.size), f"correlation {z.max() / np.sqrt(rows.shape[1]):.2f}"


@pytest.mark.parametrize("length", [1, 3])
def test_arms_are_as_frequent_as_likely(length):
    arm = drawn(length).arm.reshape(-1, length)
    for position in range(length):
        counts = np.bincount(arm[:, position], minlength=len(P))
        assert_fits(float(((counts - len(arm) * P) ** 2 / (len(arm) * P)).sum()), len(P) - 1)


def test_arms_are_as_frequent_as_likely_in_each_run_and_state():
    """Over runs, states and rollouts the counts of the first arm spread as those of independent draws."""
    first = drawn().arm[..., 0] == 0
    for others in combinations(range(4), 2):
        share = first.mean(others)
        draws = first.size / share.size
        assert_fits(float(((share - P[0]) ** 2 * draws / P[0] / (1 - P[0])).sum()), share.size)


def test_arms_are_rewarded_as_often_as_they_should():
    draws, squares = drawn(), 0.0
    for arm, q in enumerate(Q):
        rewards = draws.reward[draws.arm[..., 0] == arm]
        squares += (rewards.mean() - q) ** 2 * rewards.size / q / (1 - q)
    assert_fits(squares, len(Q))


def test_responses_are_rewarded_as_often_as_their_arms_on_average():
    draws = drawn(3)
    chance = Q[draws.arm].mean(-1).round(9)
    values, which = np.unique(chance, return_inverse=True)
    which, squares, degrees = which.reshape(chance.shape), 0.0, 0
    for number, q in enumerate(values):
        rewards = draws.reward[which == number]
        if rewards.size * q * (1 - q) > 10:
            squares += (rewards.mean() - q) ** 2 * rewards.size / q / (1 - q)
            degrees += 1
    assert degrees > 10
    assert_fits(squares, degrees)


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("along", list(combinations(range(4), 2)), ids=lambda along: "-".join(AXES[i] for i in along))
@pytest.mark.parametrize("what", ["arms", "rewards"])
def test_draws_are_independent(what, along, length):
    """Over runs, rollouts, states and responses, and also diagonally over any two of them."""
    draws = drawn(length)
    assert_independent(draws.rewards if what == "rewards" else draws.arms[..., 0], along)


@pytest.mark.parametrize("axis", range(4), ids=AXES)
def test_rewards_are_independent_of_arms(axis):
    """Of the own arm, and of the arms of other runs, rollouts, states and responses."""
    arms, rewards = (
        np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1) for x in (drawn().arms[..., 0], drawn().rewards)
    )
    z = arms @ rewards.T / np.sqrt(arms.shape[1])
    assert np.abs(z).max() < limit(z.size)


def test_positions_of_a_response_are_independent():
    arms = drawn(3).arms
    assert_independent(arms, (4,))
    assert_independent(arms, (1, 4))


def test_bandits_are_independent():
    """Initial logits and right arms, over runs, states and arms."""
    environment = Environment(states=16, arms=48, right_arms=16, right_tilt=0.0, logit_std=2.0)
    logits, success = (x.numpy() for x in draw_problem(environment, torch.arange(12), torch.float64))
    right = (success == 0.6).astype(float)
    for scores in (logits / 2, (right - 1 / 3) / np.sqrt(2 / 9)):
        for along in ((0, 1), (2,)):
            assert_independent(scores, along)
    assert_fits(float((logits**2 / 4).sum()), logits.size)
    assert abs(logits.mean() / 2 * np.sqrt(logits.size)) < limit(1)


def test_right_arms_are_drawn_in_proportion_to_the_policy():
    """One right arm with tilt 1 is a draw from the policy; with tilt ½ it is one from √p, renormalised."""
    for tilt in (1.0, 0.5):
        environment = Environment(
            states=2000, arms=5, right_arms=1, right_tilt=tilt, logit_std=0.0, logits=(tuple(np.log(P)),)
        )
        _, success = draw_problem(environment, torch.arange(4), torch.float64)
        counts, share = (success == 0.6).sum((0, 1)).numpy(), P**tilt / (P**tilt).sum()
        assert_fits(float(((counts - 8000 * share) ** 2 / (8000 * share)).sum()), len(P) - 1)


@pytest.mark.parametrize("name", ["dr_grpo", "rloo"])
def test_sampled_gradients_average_to_the_expected_one(name):
    """∂E[R]/∂z = p(q − ρ): RLOO is unbiased; the group's own mean as a baseline leaves a share (G − 1)/G of it."""
    runs, group = 400, 4
    seeds = torch.arange(runs)
    logits, success = (x[:1].expand(runs, -1, -1) for x in draw_problem(NOISY, seeds[:1], torch.float64))
    policy = Policy(logits)
    rollout = sample_rollout(policy, success, get_advantage(name), Luck(seeds, 64, group), 0)
    gradient = logit_gradient(policy, rollout.arm, rollout.advantage.flatten(1) / group, None)
    rate = (policy.p * success).sum(-1, keepdim=True)
    expected = (policy.p * (success - rate))[0] * (1.0 if name == "rloo" else (group - 1) / group)
    z = (gradient.mean(0) - expected) / (gradient.std(0) / runs**0.5)
    seen = gradient.abs().gt(1e-9).sum(0) > 100
    assert z[seen].abs().max() < limit(int(seen.sum()))
    along = (gradient * expected).sum((1, 2)) / expected.square().sum()
    assert abs(along.mean() - 1) < limit(1) * along.std() / runs**0.5 < 0.2
