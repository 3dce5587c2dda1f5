"""Claims on the sampling temperature: training at it against autograd on one step, and what runs record of it."""

import numpy as np
import pytest
import torch

from toybandit import Config, simulate
from toybandit.claims.registry import Effort
from toybandit.claims.temperature import apart, own_entropy


def test_one_step_at_a_temperature_by_autograd():
    """The gradient of the expected reward of softmax(z/T) is 1/T of that in z/T; a step of it has another 1/T there."""
    z, reward, heat = torch.randn(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64), 1.7
    hot = z.clone().requires_grad_()
    (torch.softmax(hot / heat, -1) * reward).sum().backward()
    flat = (z / heat).requires_grad_()
    (torch.softmax(flat, -1) * reward).sum().backward()
    assert torch.allclose((z + 0.3 * hot.grad) / heat, z / heat + 0.3 / heat**2 * flat.grad)


@pytest.mark.parametrize("power", [1, 3])
def test_other_rates_are_told_apart(power):
    effort = Effort(instances=1, runs=2, states=8, rollouts=20)
    assert apart(effort, "noisy", 1.3) < 1e-12
    assert apart(effort, "noisy", 1.3, power) > 1e-3


def test_the_policy_itself_is_recorded_beside_the_samples():
    config = Config(env="det", states=8, rollouts=12, temperature=2.0)
    found = simulate(config, range(3), keep_policies=True)
    own = -(found.policies[:, :-1] * np.log(found.policies[:, :-1])).sum(-1).mean(-1)
    assert np.allclose(own_entropy(found), own)
    assert (own_entropy(found) < found.entropy[:, :-1]).all(), "samples at T = 2 are flatter"
    plain = simulate(Config(env="det", states=8, rollouts=12), range(3))
    assert np.array_equal(own_entropy(plain), plain.entropy[:, :-1])
    assert np.array_equal(
        simulate(Config(env="det", states=8, rollouts=12, temperature=1), range(3)).entropy, plain.entropy
    )


@pytest.mark.parametrize("wrong", [0, -1, "linear(1, 0, 9)", "0.4x", "hot", float("nan"), [1.0]])
def test_wrong_temperatures_are_refused(wrong):
    with pytest.raises(ValueError, match="temperature"):
        Config(temperature=wrong)
