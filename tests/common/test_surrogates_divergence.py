"""dppo, dppo_kl and ipo against numbers worked out by hand, and the first two against verl."""

from math import inf, log

import peers
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import Tokens, make
from entrostat.surrogates.divergence import binary_kl

OLD = [0.4, 0.4, 0.4, 0.01, 0.9]
NEW = [0.2, 0.5, 0.6, 0.25, 0.89]  # changes −.2, .1, .2, .24, −.01; ratios .5, 1.25, 1.5, 25, .989


def planned(spec: str, sign: float, **settings):
    old, logp = (torch.tensor(p, dtype=torch.float64).log() for p in (OLD, NEW))
    tokens = Tokens(logp=logp, old_logp=old, advantage=torch.full_like(old, 2.0 * sign))
    return make(spec, **settings).plan(tokens), logp


def gradients(spec: str, sign: float, **settings) -> list[float]:
    """N times ∂loss/∂log π of each token, with A = 2·sign."""
    plan, logp = planned(spec, sign, **settings)
    return (plan.coefficients(logp)[0] * len(OLD)).tolist()


@pytest.mark.parametrize(
    ("spec", "settings", "positive", "negative"),
    [
        ("dppo", {}, [-1, -2.5, 0, 0, -178 / 90], [0, 2.5, 3, 40, 178 / 90]),
        ("dppo", {"delta": 0.22}, [-1, -2.5, -3, 0, -178 / 90], [1, 2.5, 3, 40, 178 / 90]),
        ("dppo", {"delta": 1.0, "ratio_max": inf}, [-1, -2.5, -3, -50, -178 / 90], [1, 2.5, 3, 50, 178 / 90]),
        # .4·log 2 + .6·log .75 = .105; .020 upwards to .5; .081 upwards to .6; .243; .0005
        ("dppo_kl", {}, [-1, -2.5, 0, 0, -178 / 90], [0, 2.5, 3, 40, 178 / 90]),
        ("dppo_kl", {"delta": 0.09}, [-1, -2.5, -3, 0, -178 / 90], [0, 2.5, 3, 40, 178 / 90]),
        ("dppo_kl", {"delta": 0.0}, [-1, 0, 0, 0, -178 / 90], [0, 2.5, 3, 40, 0]),
        ("ipo", {"delta": 0.15, "tau": 0.0}, [0, -2.5, 0, 0, -178 / 90], [0, 2.5, 0, 0, 178 / 90]),
        ("ipo", {"delta": 0.22, "tau": 0.0}, [-1, -2.5, -3, 0, -178 / 90], [1, 2.5, 3, 0, 178 / 90]),
        ("ipo", {"delta": 1.0, "tau": 0.0}, [-1, -2.5, -3, -50, -178 / 90], [1, 2.5, 3, 50, 178 / 90]),
    ],
)
def test_gradients(spec, settings, positive, negative):
    assert gradients(spec, +1, **settings) == pytest.approx(positive, rel=1e-12)
    assert gradients(spec, -1, **settings) == pytest.approx(negative, rel=1e-12)


def test_loss_is_zero_where_stopped():
    plan, logp = planned("dppo", 1)
    expected = [-1 * log(0.2), -2.5 * log(0.5), 0, 0, -178 / 90 * log(0.89)]
    assert (plan.token_loss(logp) * len(OLD)).tolist() == pytest.approx(expected, rel=1e-12)


def test_ipo_by_hand():
    """The loss is −r·A + τ·log²r, without r·A where |p − p_old| is above .15, clipped tokens being those."""
    for sign in (1, -1):
        plan, logp = planned("ipo", sign, delta=0.15, tau=0.1)
        ratios = [new / old for new, old in zip(NEW, OLD, strict=True)]
        kept = [0, 1, 0, 0, 1]
        expected = [-2 * sign * r * k + 0.1 * log(r) ** 2 for r, k in zip(ratios, kept, strict=True)]
        assert (plan.token_loss(logp) * len(OLD)).tolist() == pytest.approx(expected, rel=1e-12)
        assert plan.clipped(logp).tolist() == [not k for k in kept]
    assert (make("ipo").surrogate.delta, make("ipo").surrogate.tau) == (0.1, 0.001)
    assert not planned("ipo", 0, delta=0.0)[0].clipped(logp).any()  # no advantage: nothing to stop


@pytest.mark.parametrize("spec", ["dppo", "ipo"])
def test_tau_pulls_every_token_to_the_rollout_policy(spec):
    """Stopped tokens too: the slope of .1·log²r is .2·log r."""
    slopes = [0.2 * log(new / old) for new, old in zip(NEW, OLD, strict=True)]
    expected = [a + b for a, b in zip(gradients(spec, 1, tau=0.0), slopes, strict=True)]
    assert gradients(spec, 1, tau=0.1) == pytest.approx(expected, rel=1e-12)
    for tau in (0.1, torch.tensor([0.0, 0.1]), "linear(0, 0.1, 5)"):
        with pytest.raises(ValueError, match=rf"'{spec}' and 'kl_ref' contradict each other: both penalise the diverg"):
            make(f"{spec}+kl_ref", tau=tau)


def test_binary_kl_by_hand():
    old, new = torch.tensor([[0.5, 0.9], [0.25, 0.6]], dtype=torch.float64).log()
    expected = [0.5 * log(2) + 0.5 * log(0.5 / 0.75), 0.9 * log(1.5) + 0.1 * log(0.25)]
    assert binary_kl(old, new).tolist() == pytest.approx(expected, rel=1e-12)


certain = st.sampled_from([-inf, -1e-9, 0.0])


@given(st.floats(-30, 0) | certain, st.floats(-30, 0) | certain)
def test_binary_kl_is_a_divergence(old, new):
    found = binary_kl(torch.tensor(old).double(), torch.tensor(new).double())
    assert found >= -1e-12
    if old == new:
        assert abs(found) < 1e-12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("spec", "name", "low"), [("dppo", "dppo_tv", 0.15), ("dppo_kl", "dppo_kl", 0.05)])
@pytest.mark.parametrize("cap", [20.0, 1.2])
def test_verl_agrees(spec, name, low, cap, seed):
    batch = peers.padded(seed)
    theirs = peers.verls(name, batch, clip_ratio=low, clip_ratio_low=None, clip_ratio_high=None, clip_ratio_c=cap)
    ours = peers.ours(spec, batch, ratio_max=cap)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-15)
    assert 0 < (theirs[1] == 0).double().mean() < 0.5
