"""dro against numbers worked out by hand and against verl."""

from math import inf

import peers
import pytest
import torch

from entrostat import Tokens, make

OLD = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64)
LOGP = torch.tensor([-1.5, -1.0, -0.5], dtype=torch.float64)
A = torch.tensor([2.0, -1.0, 0.0], dtype=torch.float64)


def planned(**settings):
    return make("dro", **settings).plan(Tokens(logp=LOGP, old_logp=OLD, advantage=A))


def test_by_hand():
    """−A·log π + .2·log²r with log r = −.5, 1, 0; the slope is −A + .4·log r."""
    plan = planned(beta=0.4)
    assert (3 * plan.token_loss(LOGP)).tolist() == pytest.approx([3 + 0.05, -1 + 0.2, 0], rel=1e-12)
    assert (3 * plan.coefficients(LOGP)[0]).tolist() == pytest.approx([-2 - 0.2, 1 + 0.4, 0], rel=1e-12)
    assert not plan.clipped(LOGP).any()
    assert plan.active().all()  # also without an advantage: such a token is held too


def test_its_gradient_is_that_of_the_papers_squared_error():
    """The square is (A − β·log r)²/(2β), whose gradient is 0 where log r = A/β."""
    logp = LOGP.clone().requires_grad_()
    squared = (A - 0.4 * (logp - OLD)) ** 2 / (2 * 0.4)
    (expected,) = torch.autograd.grad(squared.mean(), logp)
    torch.testing.assert_close(planned(beta=0.4).coefficients(LOGP)[0], expected, rtol=1e-12, atol=1e-15)
    assert planned(beta=0.4).coefficients(OLD + A / 0.4)[0].tolist() == pytest.approx([0, 0, 0], abs=1e-15)


def test_a_token_that_the_policy_cannot_draw():
    logp = torch.tensor([-inf, -inf, -0.5], dtype=torch.float64)
    assert planned().token_loss(logp).tolist()[:2] == [inf, inf]


@pytest.mark.parametrize(("spec", "slope"), [("dro", 0.1 * 99), ("ipo", 2 * 0.1 * 99), ("dppo", 2 * 0.1 * 99)])
def test_a_token_that_the_rollout_policy_cannot_have_drawn(spec, slope):
    """An engine's −∞ counts as −100 nats in the penalty; log π is −1, and A is 0."""
    tokens = Tokens(logp=torch.tensor([-1.0]), old_logp=torch.tensor([-inf]), advantage=torch.zeros(1))
    plan = make(spec, **{"beta" if spec == "dro" else "tau": 0.1}).plan(tokens)
    assert plan.loss(tokens.logp).item() == pytest.approx(slope * 99 / 2)
    assert plan.coefficients(tokens.logp)[0].item() == pytest.approx(slope)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-mean"])
def test_verl_agrees(seed, mode):
    batch = peers.padded(seed)
    theirs = peers.verls("dro", batch, mode, policy_loss=peers.SimpleNamespace(dro_beta=0.3))
    rtol = 1e-12 if mode == "token-mean" else 1e-7  # verl adds 1e-8 to a length
    torch.testing.assert_close(peers.ours("dro", batch, beta=0.3, aggregation=mode), theirs, rtol=rtol, atol=1e-15)


def test_bad_settings_and_contradictions():
    for beta in (0.0, -1.0):
        with pytest.raises(ValueError, match="dro: beta must"):
            make("dro", beta=beta)
    with pytest.raises(ValueError, match="'dro' and 'kl_ref' contradict each other: both penalise the divergence"):
        make("dro+kl_ref")
