"""Update rules against torch.optim."""

import pytest
import torch

from toybandit.updates import UPDATES, make_update

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@pytest.mark.parametrize("name", UPDATES)
def test_same_steps_as_the_optimizer(name):
    gradients = torch.randn(5, 2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    leaf = torch.zeros(2, 3, 4, dtype=torch.float64, requires_grad=True)
    optimizer = OPTIMIZERS[name]([leaf], lr=0.3)
    update, position = make_update(name, 0.3), torch.zeros(2, 3, 4, dtype=torch.float64)
    for gradient in gradients:
        leaf.grad = gradient.clone()
        optimizer.step()
        position = position + update(gradient)
        torch.testing.assert_close(position, leaf.detach(), rtol=1e-12, atol=1e-14)


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown update 'sgdd'; choose from sgd, adam"):
        make_update("sgdd", 0.1)
