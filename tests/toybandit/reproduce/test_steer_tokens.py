"""What a token does to the entropy, measured and estimated."""

import numpy as np
import pytest
import torch

from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer_tokens import GROUP, STEP, measure_tokens, sample_tokens

pytestmark = pytest.mark.slow


def entropy(logits):
    p = np.exp(logits - logits.max())
    p /= p.sum()
    return -(p * np.log(p)).sum()


def test_changes_of_one_state_by_hand():
    logits = np.log([0.5, 0.3, 0.2])
    arm, advantage = torch.tensor([[0, 2]]), torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    sample = measure_tokens(torch.from_numpy(logits).unsqueeze(0), arm, advantage)
    p = np.exp(logits)
    steps = [STEP / GROUP * a * (np.eye(3)[o] - p) for o, a in ((0, 1.0), (2, -2.0))]
    own = [entropy(logits + step) - entropy(logits) for step in steps]
    np.testing.assert_allclose(sample.own, own, rtol=1e-9)
    np.testing.assert_allclose(sample.whole, entropy(logits + sum(steps)) - entropy(logits), rtol=1e-9)
    h = entropy(logits)
    omega = -STEP / GROUP * np.array([0.5 * (np.log(0.5) + h), -2.0 * 0.8 * (np.log(0.2) + h)])
    np.testing.assert_allclose(sample.estimates["Ω"], omega, rtol=1e-12)
    np.testing.assert_allclose(sample.estimates["own logit"], omega * [0.5, 0.2], rtol=1e-12)
    np.testing.assert_allclose(sample.estimates["OPEFO"], omega * [0.5, 0.8], rtol=1e-12)


def test_sampled_tokens_come_from_the_policy():
    sample = sample_tokens(QUICK, "mixed")
    advantage = sample.advantage.reshape(-1, GROUP)
    np.testing.assert_allclose(advantage.mean(1), 0, atol=1e-12)
    assert set(np.unique((advantage > 0).sum(1))) <= set(range(GROUP))
    # The mean of −log p over samples is an estimate of the mean entropy.
    excess = -np.log(sample.p) - sample.entropy
    assert abs(excess.mean()) < 5 * excess.std() / np.sqrt(excess.size)
