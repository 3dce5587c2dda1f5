"""The expected step of advantages for several responses: against sampled groups, and by hand."""

import numpy as np
import pytest
import torch

from entrostat import get_advantage
from toybandit.claims.pass_at_k import RATES, expected_weight, observed, truncated
from toybandit.claims.registry import Effort


@pytest.mark.parametrize("size", [2, 4])
def test_expected_weights_are_those_of_sampled_groups(size):
    """Arms of a softmax, of which the first succeeds: the step's slope in its logit is w·p(1 − p)."""
    g = torch.Generator().manual_seed(size)
    p, groups = float(RATES[2]), 200_000
    arm = (torch.rand(groups, size, generator=g, dtype=torch.float64) > p).long()  # 0 is right
    ids = torch.arange(groups).repeat_interleave(size)
    advantage = get_advantage("max_rl")((arm == 0).double().flatten(), ids).reshape(groups, size)
    steps = (advantage * ((arm == 0).double() - p)).mean(-1)
    expected = expected_weight(size)[2] * p * (1 - p)
    assert abs(steps.mean() - expected) < 5 * steps.std() / groups**0.5
    assert abs(steps.mean() - truncated(size)[2] * p * (1 - p)) > 20 * steps.std() / groups**0.5


def test_expansions_by_hand():
    """p = .3: orders 1 and 2 have the weights 1 and 1 + .7."""
    assert truncated(1)[2] == 1
    assert truncated(2)[2] == pytest.approx(1.7)
    assert torch.allclose(truncated(2000)[1:], 1 / RATES[1:]), "the gradient of log p is ∇p/p"


def test_runs_of_both_start_from_the_same_policies():
    effort = Effort(instances=1, runs=3, states=8, rollouts=20)
    assert np.array_equal(observed(effort, "det", "grpo")[:, 0], observed(effort, "det", "pass_at_k k=2")[:, 0])
