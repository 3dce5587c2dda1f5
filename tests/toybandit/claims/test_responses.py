"""Equation 7 on two tokens computed by hand, and on responses of one token."""

from math import log

import pytest
import torch

from toybandit.claims.registry import QUICK
from toybandit.claims.responses import Responses, covariance, fall, responses, unexplained


def test_two_tokens_by_hand():
    """Arms ¾, ¼ at both tokens; A is 1 for the likeliest response alone, less its mean 9/16.

    A token's step is ±9/64, so −ΔH = ¾·¼·(9/32)·ln 3 = 27/512 ln 3; the covariance is 189/4096 ln 3, or ⅞ of it.
    """
    logp = torch.tensor([0.75, 0.25], dtype=torch.float64).log().expand(1, 2, 2)
    tokens = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    likelihood = torch.tensor([[9, 3, 3, 1]], dtype=torch.float64) / 16
    advantage = torch.tensor([[7, -9, -9, -9]], dtype=torch.float64) / 16
    found = Responses(logp, tokens, likelihood.log(), advantage)
    assert fall(found).item() == pytest.approx(27 / 512 * log(3))
    assert covariance(found, 1).item() == pytest.approx(189 / 4096 * log(3))


def test_one_token_is_theorem_1():
    found = responses(QUICK, 1)
    torch.testing.assert_close(covariance(found, 1), fall(found))


def test_unexplained_share():
    x, y = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert unexplained(-3 * x, x) == 0
    assert unexplained(x, y) == 1
    assert unexplained(x + y, x) == pytest.approx(0.5)
