"""Ω, the steps it belongs to, and what is measured of both, on a state computed by hand."""

from math import log

import pytest
import torch

from entrostat import entropy_change
from toybandit.claims.assumption_1 import (
    correlation,
    implemented,
    omega,
    own_step,
    relative_error,
    softmax_step,
    wrong_signs_alone,
)
from toybandit.claims.registry import QUICK
from toybandit.claims.tokens import wrong_signs

LOGITS = torch.tensor([[log(2), 0.0, 0.0]], dtype=torch.float64)
"""p = ½, ¼, ¼: H = 1.5 ln 2, and lp + H is ½ ln 2 for the first arm, −½ ln 2 for the others."""
OLD = torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.float64)
ADVANTAGE = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
CASE = (LOGITS, OLD, ADVANTAGE)


def test_equation_8():
    """The first arm's ratio is 2: Ω = −½·(1/¼)·½·½·½ ln 2 = −¼ ln 2."""
    assert omega(*CASE).item() == pytest.approx(-0.25 * log(2))


def test_bracket_of_a_token_lacks_a_factor_p():
    assert implemented(*CASE).item() == pytest.approx(-0.5 * log(2))


def test_equation_14_moves_the_arms_of_the_advantage_alone():
    torch.testing.assert_close(own_step(*CASE), torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(softmax_step(*CASE), torch.tensor([[1.0, -0.5, -0.5]], dtype=torch.float64))


def test_errors_are_relative_to_no_change():
    truth = torch.tensor([1.0, -2.0], dtype=torch.float64)
    assert relative_error(torch.zeros(2, dtype=torch.float64), truth) == 1
    assert relative_error(-truth, truth) == 4
    assert correlation(-truth, truth) == pytest.approx(-1)


def test_signs_are_right_where_a_logit_moves_alone():
    def opposite(logp, entropy, weight):
        return weight * (logp + entropy)

    assert wrong_signs_alone(2.0, QUICK, entropy_change.steer) == 0
    assert wrong_signs(opposite, QUICK, 2.0) > 0.5
