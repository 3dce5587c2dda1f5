"""Theorem 2 of The Entropy Mechanism (section 3.2, appendix C.4).

Assumption: one state, natural policy gradient of J = E_p[A], any A. F = diag(p) − p·pᵀ is the Fisher matrix.
Statement: F⁺∇J = A up to a constant, and ΔH = −η·Cov_p(log p, A) + O(η²).
"""

from math import log

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import derivative, gradient, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import error_order, second, updated

from entrostat.entropy_change import natural_policy_gradient


@theorem
@given(policies(), seeds)
def test_the_advantage_solves_the_natural_gradient(z, seed):
    """F·A = ∇J, where F·A = p∘A − p·(pᵀA)."""
    p, advantage = torch.softmax(z, -1), vector(z, seed)
    same(p * advantage - p * mean(p, advantage), gradient(lambda z: mean(torch.softmax(z, -1), advantage), z))


@theorem
@given(policies(largest=12, even=False, rarest=2), seeds)
def test_pseudo_inverse(z, seed):
    p, advantage = torch.softmax(z, -1), vector(z, seed)
    step = torch.linalg.pinv(torch.diag(p) - torch.outer(p, p), rtol=1e-12, hermitian=True) @ (
        p * (advantage - mean(p, advantage))
    )
    torch.testing.assert_close(step, advantage - advantage.mean(), rtol=0, atol=1e-9)


@theorem
@given(policies(), seeds, st.floats(-50, 50))
def test_theorem_2(z, seed, baseline):
    logp, advantage = torch.log_softmax(z, -1), vector(z, seed)
    same(natural_policy_gradient(logp, advantage), derivative(z, advantage))
    shifted = natural_policy_gradient(logp, advantage + baseline)
    torch.testing.assert_close(shifted, natural_policy_gradient(logp, advantage), rtol=1e-9, atol=1e-11)


def test_the_plain_gradient():
    """Counter-example with another update rule: p = ½, ¼, ¼ and A = 1, 0, 0.

    In units of ln 2, log p − E is ½, −½, −½. Along A the entropy falls by ¼, along p(A − ½) = ¼, −⅛, −⅛ by 3/32.
    """
    p, advantage = row(0.5, 0.25, 0.25), row(1, 0, 0)
    same(natural_policy_gradient(p.log(), advantage), row(-log(2) / 4)[0])
    same(derivative(p.log(), p * (advantage - 0.5)), row(-3 / 32 * log(2))[0])


def test_simulated():
    """The simulator's natural gradient, with A = R: any baseline will do. Its plain gradient is not the theorem's."""
    for update, is_that in (("npg", True), ("sgd", False)):
        found = updated(controller="clip_free", gradient="exact", update=update)
        assert second(error_order(found, natural_policy_gradient(found.logp, found.success))) is is_that
