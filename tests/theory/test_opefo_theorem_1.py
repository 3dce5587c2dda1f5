"""Theorem 1 of OPEFO (section 3.3), strictly on-policy.

Assumption 1: a sampled token moves its own logit alone, as in STEER.
Statement (6): ΔH = −η·E_p[A(1−p)²(log p + H)].
It fails under its own assumption: the derivation gives A·p(1−p)(log p + H) in the expectation.
"""

from math import log

import torch
from hypothesis import given
from tests.theory.policies import derivative, entropy, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import arms_of, moved_alone, order, second, updated, with_rates

from entrostat.entropy_change import opefo, own_logit


@theorem
@given(policies(), seeds)
def test_what_the_assumption_gives(z, seed):
    logp, advantage = torch.log_softmax(z, -1), vector(z, seed)
    p = logp.exp()
    same(mean(p, own_logit(logp, entropy(z), advantage)), derivative(z, p * advantage * (1 - p)))


@theorem
@given(policies(), seeds)
def test_equation_6_has_one_minus_p_for_p(z, seed):
    logp, advantage = torch.log_softmax(z, -1), vector(z, seed)
    p = logp.exp()
    same(p * opefo(logp, entropy(z), advantage), -torch.expm1(logp) * own_logit(logp, entropy(z), advantage))


def test_a_token_of_one_quarter():
    """Counter-example: p = ½, ¼, ¼, and A = 1 for the second arm, lp + H = −½ ln 2.

    H rises by ¼·¼·¾·½ ln 2 = 3/128 ln 2; equation 6 says ¼·(¾)²·½ ln 2, three times that.
    """
    p = row(0.5, 0.25, 0.25)
    same(derivative(p.log(), row(0, 0.25 * 0.75, 0)), row(3 / 128 * log(2))[0])
    same(mean(p, opefo(p.log(), entropy(p.log()), row(0, 1, 0))), row(9 / 128 * log(2))[0])


def test_simulated():
    """Tokens that the simulator drew, each moving its own logit alone: equation 6 is wrong to first order."""
    found = updated(controller="clip_free", advantage="rloo", group=8)
    arm, weight = arms_of(found.logp, found.tokens), found.tokens.advantage[0].unflatten(-1, (-1, 8))
    change, lp, h = moved_alone(found.logp, arm, weight), found.logp.gather(-1, arm), entropy(found.logp).unsqueeze(-1)
    assert second(order(change - with_rates(own_logit(lp, h, weight).mean(-1))))
    assert not second(order(change - with_rates(opefo(lp, h, weight).mean(-1))))
