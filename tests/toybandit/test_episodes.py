"""Responses of several tokens: walks through a tree, the share of tokens at each node, and what controllers see."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit import Config, simulate
from toybandit.environments import Environment
from toybandit.episodes import inverse_cdf, sample_episodes, token_mean, visits
from toybandit.luck import Luck
from toybandit.policy import Policy
from toybandit.problem import draw_problem

TREE = Environment(states=3, arms=5, length=3, branching=2, group=400, right_arms=2)
SMALL = {"states": 4, "length": 3, "branching": 2, "rollouts": 4, "passes": 2, "group": 8}
SEQUENCE_RULES = ("gspo", "gmpo", "gtpo", "unlikeliness", "dmmpt", "ppl_advantage", "position_advantage", "edge")


def policy(runs: int = 2):
    generator = torch.Generator().manual_seed(0)
    return Policy(torch.randn(runs, TREE.rows, TREE.arms, generator=generator, dtype=torch.float64))


def test_rows_are_the_nodes_of_every_tree():
    assert TREE.rows == 3 * (1 + 2 + 4)


def test_visits_are_the_shares_of_sampled_tokens():
    ours = policy()
    node, arm = sample_episodes(ours, TREE, Luck(torch.tensor([1, 2]), 3, 400), step=0)
    assert node.shape == arm.shape == (2, 3, 400, 3)
    counts = torch.nn.functional.one_hot(node.flatten(2), 7).double().mean(2)
    share = visits(ours, TREE).reshape(2, 3, 7)
    torch.testing.assert_close(share.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    error = (counts - share).abs() / (share * (1 - share) / 400).sqrt()
    assert error.max() < 5


def test_children_follow_from_the_arm():
    node, arm = sample_episodes(policy(), TREE, Luck(torch.tensor([1, 2]), 3, 400), step=0)
    assert (node[..., 0] == 0).all()
    assert torch.equal(node[..., 1], 1 + arm[..., 0] % 2)
    assert torch.equal(node[..., 2], 3 + 2 * (arm[..., 0] % 2) + arm[..., 1] % 2)


def test_mean_over_tokens_by_hand():
    """A tree of two levels: half of the tokens at the root, the other half at the children by the root's arms."""
    environment = Environment(states=1, arms=3, length=2, branching=2, right_arms=1)
    p = torch.tensor([[[0.5, 0.3, 0.2], [0.8, 0.1, 0.1], [0.2, 0.2, 0.6]]], dtype=torch.float64)
    ours = Policy(p.log())
    torch.testing.assert_close(visits(ours, environment), torch.tensor([[0.5, 0.35, 0.15]], dtype=torch.float64))
    x = torch.tensor([[1.0, 2.0, 10.0]], dtype=torch.float64)
    assert float(token_mean(x, ours, environment)) == pytest.approx(0.5 + 0.7 + 1.5, rel=1e-12)
    plain = Environment(states=3, arms=3, right_arms=1)
    assert float(token_mean(x, ours, plain)) == pytest.approx(13 / 3, rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(arms=st.integers(2, 33), seed=st.integers(0, 10**6))
def test_inverse_cdf_is_searchsorted(arms, seed):
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(4, arms, generator=generator, dtype=torch.float64) ** 3
    cumulative = (p / p.sum(-1, keepdim=True)).cumsum(-1)
    draw = torch.cat([torch.rand(4, 50, generator=generator, dtype=torch.float64), cumulative, 1 + cumulative], -1)
    expected = torch.searchsorted(cumulative, draw).clamp(max=arms - 1)
    assert torch.equal(inverse_cdf(cumulative, draw), expected)


def test_one_token_is_the_plain_bandit():
    plain = simulate(Config(states=4, rollouts=3, passes=2), [3])
    tree = simulate(Config(states=4, rollouts=3, passes=2, length=1, branching=3), [3])
    assert np.array_equal(plain.entropy, tree.entropy)


def test_probabilities_and_success_have_a_row_for_each_node():
    run = simulate(Config(**SMALL), range(2))
    assert run.probabilities.shape == run.success.shape == run.logits.shape == (2, 4 * 7, 16)
    assert run.entropy.shape == (2, 5)


@pytest.mark.parametrize("controller", SEQUENCE_RULES)
def test_rules_for_sequences_act_on_sequences(controller):
    """With one token a response they are something else, or nothing; here they change what GRPO does."""
    args = {"dmmpt": {"tau": 0.5, "entropy_low": 5.0}}.get(controller, {})
    run = simulate(Config(controller=controller, controller_args=args, **SMALL), range(2))
    plain = simulate(Config(**SMALL), range(2))
    assert np.isfinite(run.entropy).all()
    assert np.abs(run.entropy[:, -1] - plain.entropy[:, -1]).max() > 1e-9


def test_predicted_change_is_that_of_the_rows_where_they_were_visited():
    gaps = []
    for lr in (1e-2, 1e-3):
        config = Config(**SMALL | {"rollouts": 1, "lr": lr, "states": 16})
        environment = config.environment()
        run = simulate(config, range(4), predict=True)
        before = Policy(draw_problem(environment, torch.arange(4), torch.float64).logits)
        after = Policy(torch.tensor(run.logits))
        change = (visits(before, environment) * (after.entropy - before.entropy)).sum(-1) / 16
        gaps.append(np.abs(run.predicted[:, 0] - change.numpy()).mean())
        assert change.abs().mean() > 1e-6
    assert np.log10(gaps[0] / gaps[1]) == pytest.approx(2, abs=0.2)
