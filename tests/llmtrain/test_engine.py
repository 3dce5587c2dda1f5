"""What engines have in common."""

import math

import pytest
import torch

from llmtrain.engine import clip


@pytest.mark.parametrize(("most", "left"), [(0.5, 0.5), (9.0, 5.0), (0.0, 5.0)])
def test_gradients_are_scaled_down_to_a_norm_and_0_leaves_them(most, left):
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert clip([weight], most) == 5
    assert float(weight.grad.norm()) == pytest.approx(left)


def test_a_norm_that_is_not_finite_is_told():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([math.inf, 0.0])
    assert clip([weight], 0.0) == math.inf
