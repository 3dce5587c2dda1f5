"""Theorem 1 of STEER (section 3.1, proof in appendix F), with L = 1.

Assumption 1: a sampled token a moves its own logit alone, by η·w·(1 − p_a), w = 1_clip·A·p_a/π_old(a) (equation 14).
Statement (8): ΔH = Ω + O(η²), Ω = −η·E_p[1_clip·A/π_old · p(1−p)(log p + H)].
"""

from math import log

import torch
from hypothesis import given
from tests.theory.policies import derivative, entropy, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import arms_of, moved_alone, order, second, updated, with_rates

from entrostat.entropy_change import exact, own_logit, steer


@theorem
@given(policies(), seeds)
def test_theorem_1(z, seed):
    """All actions of a state at once, π_old other than π; a clipped token has w = 0."""
    logp, old = torch.log_softmax(z, -1), torch.softmax(z + vector(z, seed), -1)
    p, advantage = logp.exp(), vector(z, seed + 1)
    ratio = p / old
    kept = advantage.masked_fill(((advantage > 0) & (ratio > 1.2)) | ((advantage < 0) & (ratio < 0.8)), 0.0)
    omega = -mean(p, kept / old * p * (1 - p) * (logp + entropy(z)))
    same(omega, derivative(z, kept * ratio * (1 - p)))


@theorem
@given(policies(), seeds)
def test_a_token(z, seed):
    """For one token Ω is −w·p(1−p)(lp + H): the factor p comes from ∂H/∂z_a = −p_a(log p_a + H), equation 11."""
    arm = seed % len(z)
    logp, step = torch.log_softmax(z, -1), torch.zeros_like(z)
    step[arm] = 0.7 * -torch.expm1(logp[arm])
    same(own_logit(logp[arm], entropy(z), row(0.7)[0]), derivative(z, step))


def test_the_bracket_without_its_factor_p():
    """Counter-example, as implemented and released: p = ½, ¼, ¼ and the first arm is rewarded, lp + H = ½ ln 2.

    The entropy falls by ½·½·½·½ ln 2 = ln 2/8; the bracket (1−p)(lp + H) is twice that.
    """
    logp, h = row(0.5, 0.25, 0.25).log(), row(1.5 * log(2))[0]
    same(derivative(logp, row(0.5, 0, 0)), row(-log(2) / 8)[0])
    same(steer(logp[0], h, row(1)[0]), row(-log(2) / 4)[0])


def test_the_whole_gradient():
    """Counter-example without assumption 1: the same token moves all logits by ½, −¼, −¼, and H falls by 3/16 ln 2."""
    p = row(0.5, 0.25, 0.25)
    found = derivative(p.log(), row(0.5, -0.25, -0.25))
    same(found, row(-3 / 16 * log(2))[0])
    s2, s2l = p.square().sum(), (p.square() * p.log()).sum()
    same(exact(p.log()[0], row(1.5 * log(2))[0], s2, s2l, row(1)[0]), found)


def test_simulated():
    """Tokens of a second pass, π ≠ π_old, each moving its own logit alone unless clipped."""
    made = {"controller": "grpo", "lr": (2.0,) * 4, "advantage": "rloo", "group": 8}
    first, both = updated(**made), updated(passes=2, **made)
    moved, tokens = torch.log_softmax(first.logp + first.step[0], -1), both.last
    arm = arms_of(first.logp, tokens)
    lp, h = moved.gather(-1, arm), entropy(moved).unsqueeze(-1)
    ratio, advantage = (lp - first.logp.gather(-1, arm)).exp(), tokens.advantage[0].unflatten(-1, (-1, 8))
    clipped = ((advantage > 0) & (ratio > 1.2)) | ((advantage < 0) & (ratio < 0.8))
    assert 0.1 < clipped.double().mean() < 0.9
    weight = (advantage * ratio).masked_fill(clipped, 0.0)
    change = moved_alone(moved, arm, weight)
    assert second(order(change - with_rates(own_logit(lp, h, weight).mean(-1))))
    assert not second(order(change - with_rates(own_logit(lp, h, advantage * ratio).mean(-1))))
    same(lp, tokens.get("logp")[0].unflatten(-1, (-1, 8)))
