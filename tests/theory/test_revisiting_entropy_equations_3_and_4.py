"""Equations 3 and 4 of Revisiting Entropy (section 7.1, derivation in appendix E.1).

Assumption: one sampled token a of advantage A, on-policy, free logits.
Statement: ∂J/∂z_b = −A·p_b for other tokens b, and A·(1 − p_a) for a itself. So A > 0 raises the probability of the
sampled token and lowers those of the others.
"""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import gradient, policies, row, same, seeds, theorem
from tests.theory.simulations import RATES, arms_of, updated


def sampled(z, seed):
    """Return an arm and its indicator."""
    arm = seed % len(z)
    return arm, torch.zeros_like(z).index_fill_(0, torch.tensor(arm), 1.0)


def rise(z, step):
    """Return dp/dη along z + η·step."""
    return torch.func.jvp(lambda z: torch.softmax(z, -1), (z,), (step,))[1]


@theorem
@given(policies(), seeds, st.floats(-2, 2))
def test_equations_3_and_4(z, seed, advantage):
    arm, indicator = sampled(z, seed)
    found = gradient(lambda z: advantage * torch.log_softmax(z, -1)[arm], z)
    same(found, advantage * (indicator - torch.softmax(z, -1)))


@theorem
@given(policies(), seeds)
def test_the_sampled_token_gains(z, seed):
    arm, indicator = sampled(z, seed)
    p = torch.softmax(z, -1)
    others = (p * (1 - indicator)).square().sum()
    same(rise(z, indicator - p)[arm], p[arm] * ((p * (1 - indicator)).sum() ** 2 + others))


@theorem
@given(policies(), seeds)
def test_another_token_loses_where_it_is_likely_enough(z, seed):
    """dp_b = −p_b·(p_a + p_b − Σp²): the condition that the statement lacks is p_a + p_b > Σp²."""
    arm, indicator = sampled(z, seed)
    p = torch.softmax(z, -1)
    excess = p[arm] + p - p.square().sum()
    left = (rise(z, indicator - p) + p * excess) * (1 - indicator)
    assert left.abs().max() < 1e-12


def test_a_rare_token_gains_with_another():
    """Counter-example: p = .8, .1, .1, and an arm of .1 is rewarded: the other one gains .1·(.66 − .2) = .046."""
    p = row(0.8, 0.1, 0.1)
    same(rise(p.log(), row(0, 1, 0) - p)[2], row(0.046)[0])


def test_simulated():
    """One token a state: the simulator moves its logits by η·A·(e_a − p), and the token's probability rises with A."""
    found = updated(controller="reinforce", advantage="w_reinforce", group=1)
    arm, advantage, p = arms_of(found.logp, found.tokens), found.tokens.advantage[0].unsqueeze(-1), found.logp.exp()
    expected = advantage * (torch.zeros_like(p).scatter(-1, arm, 1.0) - p)
    for rate, step in zip(RATES, found.step, strict=True):
        same(step, rate * expected)
        risen = (torch.softmax(found.logp + step, -1) - p).gather(-1, arm)
        assert torch.equal(risen > 0, advantage > 0)
    assert set(advantage.flatten().tolist()) == {0.1, -1.0}
