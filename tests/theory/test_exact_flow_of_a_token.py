"""Exact entropy flow of a sampled token (ours; what STEER's theorem 1 and OPEFO's equation 6 leave out).

Symbols: w the token's weight A·r, S2 = Σp², S2L = Σp² log p, f_a = p_a(log p_a + H).
Assumption: free logits, the whole gradient of the softmax, Δz = η·w·(e_a − p).
Statement: ΔH = −η·w·[f_a − (S2L + H·S2)] + O(η²). Flows of tokens add, and their mean over a ~ p is 0. For w > 0 they
are negative where p_a > p*, the root of p*(log p* + H) = S2L + H·S2, and p* ≥ e^(−H).
"""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.theory.policies import derivative, mean, policies, row, same, seeds, theorem, vector
from tests.theory.simulations import error_order, second, updated

from entrostat import policy_stats
from entrostat.entropy_change import exact, own_logit
from toybandit.claims.tokens import boundary


def flows(z):
    """Return the flow of each arm as the sampled token, of weight 1."""
    s = policy_stats(z)
    return exact(s.logp, s.entropy, s.s2, s.s2l, torch.ones_like(z))


@theorem
@given(policies(), seeds)
def test_the_flow_is_the_derivative(z, seed):
    arm = seed % len(z)
    step = -torch.softmax(z, -1)
    step[arm] += 1
    same(flows(z)[arm], derivative(z, step))


@theorem
@given(policies(), seeds)
def test_flows_add(z, seed):
    weight = vector(z, seed)
    step = weight - torch.softmax(z, -1) * weight.sum()
    torch.testing.assert_close((weight * flows(z)).sum(), derivative(z, step), rtol=1e-9, atol=1e-11)


@theorem
@given(policies())
def test_the_mean_flow_is_zero(z):
    assert mean(torch.softmax(z, -1), flows(z)).abs() < 1e-12


@theorem
@given(policies(even=False, rarest=3))
def test_the_sign_turns_at_p_star(z):
    s, star = policy_stats(z), boundary(z[None])[0]
    p = s.logp.exp()
    assert star >= (-s.entropy).exp() * (1 - 1e-12)
    torch.testing.assert_close(star * (star.log() + s.entropy), s.s2l + s.entropy * s.s2, rtol=1e-9, atol=1e-12)
    clear = (p / star - 1).abs() > 1e-6
    assert (clear & (p < star)).any()
    assert (clear & (p > star)).any()
    assert torch.equal(clear & (p < star), clear & (flows(z) > 0))


@theorem
@given(policies(), seeds, st.floats(-50, 50))
def test_logits_may_be_shifted_and_arms_permuted(z, seed, shift):
    order = torch.randperm(len(z), generator=torch.Generator().manual_seed(seed))
    same(flows(z[order]), flows(z)[order])
    torch.testing.assert_close(flows(z + shift), flows(z), rtol=1e-9, atol=1e-12)


def test_a_step_on_the_own_logit_alone():
    """Counter-example under STEER's assumption 1: p = .5, .4, .1 and the arm of .4. The flow is positive; the step on
    its own logit, (1 − p)·e_a, lowers the entropy."""
    z = row(0.5, 0.4, 0.1).log()
    assert flows(z)[1] > 0.04
    assert derivative(z, row(0, 0.6, 0)) < -0.005


def test_simulated():
    """Sampled tokens in their own states: the sum of their flows is the first-order change of each state."""
    found = updated(controller="clip_free", advantage="rloo", group=8)
    t = found.tokens
    weight = t.advantage / 8
    flow = exact(t.get("logp"), t.get("entropy"), t.get("s2"), t.get("s2l"), weight)
    assert second(error_order(found, found.by_state(flow)))
    assert not second(error_order(found, found.by_state(own_logit(t.get("logp"), t.get("entropy"), weight))))
