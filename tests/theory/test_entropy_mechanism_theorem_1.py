"""Proposition 1 and theorem 1 of The Entropy Mechanism (section 3.2, appendix C.3).

Assumption: one state, policy gradient of J = E_p[A], and E_p[A] = 0 (the paper's lemma 3: A is the true advantage).
Statement: Δz = η·p·A, and ΔH = −η·Cov_p(log p, p·A) + O(η²).
"""

from math import log

import torch
from hypothesis import given
from tests.theory.policies import derivative, gradient, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import error_order, second, updated

from entrostat.entropy_change import policy_gradient


def ascent(z, advantage):
    """Return ∂E_p[A]/∂z."""
    return gradient(lambda z: mean(torch.softmax(z, -1), advantage), z)


@theorem
@given(policies(), seeds)
def test_proposition_1(z, seed):
    p, advantage = torch.softmax(z, -1), vector(z, seed)
    advantage = advantage - mean(p, advantage)
    same(ascent(z, advantage), p * advantage)


@theorem
@given(policies(), seeds)
def test_theorem_1(z, seed):
    p, advantage = torch.softmax(z, -1), vector(z, seed)
    advantage = advantage - mean(p, advantage)
    same(policy_gradient(torch.log_softmax(z, -1), advantage), derivative(z, ascent(z, advantage)))


def test_an_advantage_that_is_not_centred():
    """Counter-example without E_p[A] = 0: A = 1 everywhere on p = ½, ¼, ¼ moves nothing.

    The formula is −Cov(log p, p) = −ln 2/16: in units of ln 2, log p + 1.5 is ½, −½, −½ and p − 3/8 is ⅛, −⅛, −⅛.
    """
    z, one = row(0.5, 0.25, 0.25).log(), row(1, 1, 1)
    same(derivative(z, ascent(z, one)), row(0)[0])
    same(policy_gradient(z, one), row(-log(2) / 16)[0])


def test_simulated():
    """The expected update of the simulator; with A = R, which is not centred, the formula is wrong to first order."""
    found = updated(controller="clip_free", gradient="exact")
    rate = mean(found.logp.exp(), found.success).unsqueeze(-1)
    assert second(error_order(found, policy_gradient(found.logp, found.success - rate)))
    assert not second(error_order(found, policy_gradient(found.logp, found.success)))
