"""Update rules against torch.optim."""

import pytest
import torch

from toybandit.policy import Policy
from toybandit.updates import RULES, make_update

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_steps_as_the_optimizer(name):
    gradients = torch.randn(5, 2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    leaf = torch.zeros(2, 3, 4, dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS[name]([leaf], lr=0.3)
    update, position = make_update(name, 0.3, states=3), torch.zeros(2, 3, 4, dtype=torch.float64)
    for gradient in gradients:
        leaf.grad = gradient.clone()
        optimizer.step()
        position = position + update(gradient / 3, Policy(position))
        torch.testing.assert_close(position, leaf.detach(), rtol=1e-12, atol=1e-14)


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown update 'sgdd'; choose from sgd, npg, adam"):
        make_update("sgdd", 0.1)


def test_natural_gradient_is_the_pseudo_inverse_of_the_fisher_information():
    generator = torch.Generator().manual_seed(2)
    policy = Policy(torch.randn(2, 3, 5, generator=generator, dtype=torch.float64))
    p = policy.p
    fisher = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    gradient = (fisher @ torch.randn(2, 3, 5, 1, generator=generator, dtype=torch.float64)).squeeze(-1)
    expected = -0.3 * (torch.linalg.pinv(fisher, hermitian=True) @ gradient.unsqueeze(-1)).squeeze(-1)
    step = make_update("npg", 0.3, states=3)(gradient / 3, policy)
    torch.testing.assert_close(step, expected, rtol=1e-10, atol=1e-12)


def test_natural_gradient_where_p_underflows():
    """An arm of probability 0 has no gradient, and no share in the step but the mean."""
    policy = Policy(torch.tensor([[[0.0, 0.0, -1e4]]], dtype=torch.float64))
    gradient = torch.tensor([[[0.1, -0.1, 0.0]]], dtype=torch.float64)
    step = make_update("npg", 0.5)(gradient, policy)
    torch.testing.assert_close(step, torch.tensor([[[-0.1, 0.1, 0.0]]], dtype=torch.float64))


def test_a_rate_for_each_run():
    gradient = torch.ones(2, 3, 4, dtype=torch.float64)
    rates = torch.tensor([0.1, 0.2], dtype=torch.float64).reshape(-1, 1, 1)
    policy = Policy(torch.zeros(2, 3, 4, dtype=torch.float64))
    for name in ("sgd", "adam"):
        step = make_update(name, rates)(gradient, policy)
        torch.testing.assert_close(step[1], 2 * step[0], rtol=1e-6, atol=0)


def test_every_rule_is_named():
    assert set(RULES) == {"sgd", "npg", "adam"}
