"""The estimators against hand-computed numbers and against the entropy itself."""

from dataclasses import replace
from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import Tokens, entropy_change, make, policy_stats

P = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
H = 1.5 * log(2)
LOGITS = st.lists(st.floats(-6, 6), min_size=2, max_size=12).map(lambda z: torch.tensor(z, dtype=torch.float64))


def test_by_hand():
    lp, h, w = torch.tensor(log(0.25)), torch.tensor(H), torch.tensor(2.0)
    gap = -2 * log(2) + H  # lp + H = −0.5 ln 2
    assert entropy_change.steer(lp, h, w).item() == pytest.approx(-2 * 0.75 * gap, rel=1e-6)
    assert entropy_change.own_logit(lp, h, w).item() == pytest.approx(-2 * 0.75 * 0.25 * gap, rel=1e-6)
    assert entropy_change.opefo(lp, h, w).item() == pytest.approx(-2 * 0.75**2 * gap, rel=1e-6)
    s = policy_stats(P.log())
    collision = -0.5 * log(2) + H * 0.375
    assert entropy_change.exact(lp, h, s.s2, s.s2l, w).item() == pytest.approx(-2 * (0.25 * gap - collision), rel=1e-6)
    assert entropy_change.covariance(lp, w, torch.tensor(-1.0), torch.tensor(0.5)).item() == pytest.approx(
        (log(0.25) + 1) * 1.5, rel=1e-6
    )


def test_lemma1_by_hand():
    """Cov_p(log p, Δz) with Δz = (1, 0, 0): E[lp·Δz] − E[lp]E[Δz] = −.5 ln 2 + .75 ln 2."""
    delta = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    assert entropy_change.lemma1(P.log(), delta).item() == pytest.approx(-0.25 * log(2), rel=1e-14)
    assert entropy_change.natural_policy_gradient(P.log(), delta).item() == pytest.approx(-0.25 * log(2), rel=1e-14)
    assert entropy_change.policy_gradient(P.log(), delta).item() == pytest.approx(-0.125 * log(2), rel=1e-14)


@settings(derandomize=True, deadline=None)
@given(logits=LOGITS, data=st.data(), weight=st.floats(-3, 3))
def test_exact_is_the_derivative_of_the_entropy(logits, data, weight):
    action = data.draw(st.integers(0, len(logits) - 1))
    s = policy_stats(logits)
    step = weight * (torch.nn.functional.one_hot(torch.tensor(action), len(logits)) - s.logp.exp())
    h = 1e-5
    numeric = (policy_stats(logits + h * step).entropy - policy_stats(logits - h * step).entropy) / (2 * h)
    found = entropy_change.exact(s.logp[action], s.entropy, s.s2, s.s2l, torch.tensor(weight, dtype=torch.float64))
    assert found.item() == pytest.approx(numeric.item(), rel=1e-6, abs=1e-9)
    assert found.item() == pytest.approx(entropy_change.lemma1(s.logp, step).item(), rel=1e-9, abs=1e-12)


def test_bonus_by_hand():
    """p = (¾, ¼): H = .5623, ∂H/∂z₁ = −¾(log ¾ + H) = −.2060 = −∂H/∂z₂."""
    s = policy_stats(torch.tensor([3.0, 1.0], dtype=torch.float64).log())
    assert entropy_change.bonus(s.entropy, s.s2, s.s2l, s.s2ll).item() == pytest.approx(2 * 0.2059898**2, rel=1e-6)


@settings(derandomize=True, deadline=None)
@given(seed=st.integers(0, 10**6), actions=st.integers(2, 40), spread=st.floats(0.1, 6))
def test_bonus_and_planned_are_products_of_gradients(seed, actions, spread):
    """Of a step against the gradient of the loss H changes by −∇H·∇loss, and of one along its own by ‖∇H‖²."""
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(7, actions, generator=generator, dtype=torch.float64)
    logits = (spread * random[:5]).requires_grad_()
    s = policy_stats(logits)
    action = torch.randint(0, actions, (5, 1), generator=generator)
    logp = s.logp.gather(-1, action).squeeze(-1)
    (of_entropy,) = torch.autograd.grad(s.entropy.sum(), logits, retain_graph=True)
    moments = {name: getattr(s, name).detach() for name in ("entropy", "s2", "s2l", "s2ll")}
    near = {"rtol": 1e-9, "atol": 1e-13}
    torch.testing.assert_close(entropy_change.bonus(**moments), of_entropy.square().sum(-1), **near)
    old = (logp.detach() + 0.1 * random[5, :1]).clamp(max=0)
    tokens = Tokens(logp=logp.detach(), old_logp=old, ref_logp=old - 1, advantage=random[6, :1].expand(5), **moments)
    for spec in ("ppo", "kl_ref+entropy_bonus"):
        plan = make(spec).plan(tokens)
        (of_loss,) = torch.autograd.grad(plan.loss(logp, s.entropy), logits, retain_graph=True)
        found = entropy_change.planned(tokens, plan)
        torch.testing.assert_close(found.total, -(of_entropy * of_loss).sum(-1), **near)
        assert (found.bonus is None) == (spec == "ppo")
        elsewhere = entropy_change.planned(replace(tokens, logp=None), plan, tokens.logp)
        assert torch.equal(found.total, elsewhere.total)


@settings(derandomize=True, deadline=None)
@given(logits=LOGITS)
def test_exact_has_mean_zero_over_actions(logits):
    s = policy_stats(logits)
    flow = entropy_change.exact(s.logp, s.entropy, s.s2, s.s2l, torch.ones((), dtype=torch.float64))
    assert abs((s.logp.exp() * flow).sum().item()) < 1e-13


def test_impossible_actions_do_not_spoil_lemma1():
    logp = torch.log_softmax(torch.tensor([0.0, -torch.inf, 1.0], dtype=torch.float64), -1)
    assert torch.isfinite(entropy_change.lemma1(logp, torch.ones(3, dtype=torch.float64)))


def test_every_distribution_by_itself():
    logits, moved = torch.randn(2, 4, 3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    logp = logits.log_softmax(-1)
    together = entropy_change.lemma1(logp, moved)
    for i in range(4):
        for j in range(3):
            alone = entropy_change.lemma1(logp[i, j], moved[i, j])
            torch.testing.assert_close(together[i, j], alone, rtol=1e-12, atol=1e-15)


def test_actions_without_probability():
    """p = (½, ½, 0): a token that could not be drawn moves its distribution by the collision term alone, which is 0."""
    half, minus_infinity = -torch.tensor(2.0, dtype=torch.float64).log(), torch.tensor(-torch.inf, dtype=torch.float64)
    stats = policy_stats(torch.stack([half, half, minus_infinity]))
    flow = entropy_change.exact(minus_infinity, stats.entropy, stats.s2, stats.s2l, torch.ones_like(half))
    assert abs(float(flow)) < 1e-15
    moved = entropy_change.lemma1(stats.logp, torch.tensor([1.0, -1.0, 9.0], dtype=torch.float64))
    assert abs(float(moved)) < 1e-15
