"""cispo, ce_gppo, aspo and sapo against numbers worked out by hand: N times ∂loss/∂log π of tokens with A = ±2."""

from math import exp, inf, log

import pytest
import torch

from entrostat import Tokens, make

RATIOS = [0.5, 0.9, 1.0, 1.25, 6.0]


def planned(spec: str, sign: float, size: float = 2.0, **settings):
    old = torch.full((len(RATIOS),), -3.0, dtype=torch.float64)
    logp = old + torch.tensor(RATIOS, dtype=torch.float64).log()
    ids = torch.arange(len(RATIOS))
    tokens = Tokens(logp=logp, old_logp=old, advantage=torch.full_like(old, size * sign), seq_id=ids)
    return make(spec, **settings).plan(tokens), logp


def gradients(spec: str, sign: float, size: float = 2.0, **settings) -> list[float]:
    """A token is a sequence of its own, so that every aggregation is the mean."""
    plan, logp = planned(spec, sign, size, **settings)
    return (plan.coefficients(logp)[0] * len(RATIOS)).tolist()


@pytest.mark.parametrize(
    ("spec", "settings", "positive", "negative"),
    [
        # −2·min(r, 5), whatever the sign
        ("cispo", {}, [-1, -1.8, -2, -2.5, -10], [1, 1.8, 2, 2.5, 10]),
        ("cispo", {"eps_low": 0.2, "eps_high": 0.2}, [-1.6, -1.8, -2, -2.4, -2.4], [1.6, 1.8, 2, 2.4, 2.4]),
        # −2r inside; above 1.2 with A > 0: −1·1.2·2; below .8 with A < 0: .75·.8·2
        ("ce_gppo", {}, [-1, -1.8, -2, -2.4, -2.4], [1.2, 1.8, 2, 2.5, 12]),
        ("ce_gppo", {"beta_low": 0.5, "beta_high": 0.1}, [-1, -1.8, -2, -0.24, -0.24], [0.8, 1.8, 2, 2.5, 12]),
        ("ce_gppo", {"beta_low": 0.0, "beta_high": 0.0}, [-1, -1.8, -2, 0, 0], [0, 1.8, 2, 2.5, 12]),
        # released: r above 3 with A < 0 has no gradient
        ("ce_gppo", {"preset": "released"}, [-1, -1.8, -2, -2.4, -2.4], [1.2, 1.8, 2, 2.5, 0]),
        # −2·min(1/r, 3) up to r = 1.2 with A > 0; 2·min(r, 3) from .8 with A < 0
        ("aspo", {}, [-4, -2 / 0.9, -2, 0, 0], [0, 1.8, 2, 2.5, 6]),
        ("aspo", {"dual_clip": 1.5, "eps_high": 5.0}, [-3, -2 / 0.9, -2, -1.6, -1 / 3], [0, 1.8, 2, 2.5, 3]),
        ("aspo", {"dual_clip": inf, "eps_low": 0.6}, [-4, -2 / 0.9, -2, 0, 0], [1, 1.8, 2, 2.5, 12]),
    ],
)
def test_gradients(spec, settings, positive, negative):
    assert gradients(spec, +1, **settings) == pytest.approx(positive, rel=1e-12)
    assert gradients(spec, -1, **settings) == pytest.approx(negative, rel=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("ppo", {"dual_clip": 3.0}),
        ("cispo", {}),
        ("ce_gppo", {"beta_high": 0.5}),
        ("dcpo", {}),
        ("aspo", {}),
        ("sapo", {}),
    ],
)
def test_gradients_grow_with_the_advantage(spec, settings, sign):
    small = [8 * gradient for gradient in gradients(spec, sign, 0.25, **settings)]
    assert small == pytest.approx(gradients(spec, sign, **settings), rel=1e-12)


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


@pytest.mark.parametrize(("sign", "tau"), [(1, 1.0), (-1, 1.05)])
def test_sapo(sign, tau):
    plan, logp = planned("sapo", sign)
    losses = [-2 * sign * 4 / tau * sigmoid(tau * (r - 1)) for r in RATIOS]
    assert (plan.token_loss(logp) * len(RATIOS)).tolist() == pytest.approx(losses, rel=1e-12)
    slopes = [-2 * sign * 4 * r * sigmoid(tau * (r - 1)) * (1 - sigmoid(tau * (r - 1))) for r in RATIOS]
    assert gradients("sapo", sign) == pytest.approx(slopes, rel=1e-12)
    assert slopes[2] == -2 * sign  # r = 1: the gradient of PPO


def test_sapo_averages_within_responses_then_over_them():
    """Two responses of 1 and 3 tokens: weights 1/2, 1/6, 1/6, 1/6; or 1/4 each by option."""
    logp = torch.full((4,), -1.0, dtype=torch.float64)
    tokens = Tokens(logp=logp, old_logp=logp, advantage=torch.ones_like(logp), seq_id=torch.tensor([7, 9, 9, 9]))
    assert make("sapo").plan(tokens).coefficients(logp)[0].tolist() == pytest.approx([-1 / 2, -1 / 6, -1 / 6, -1 / 6])
    by_token = make("sapo", aggregation="token-mean").plan(tokens)
    assert by_token.coefficients(logp)[0].tolist() == pytest.approx([-1 / 4] * 4)


def test_ce_gppo_dual_clip_limits_the_loss():
    plan, logp = planned("ce_gppo", -1, preset="released")
    assert (plan.token_loss(logp) * len(RATIOS)).tolist() == pytest.approx([1.2, 1.8, 2, 2.5, 6], rel=1e-12)
    assert plan.clipped(logp).tolist() == [False] * 4 + [True]


def test_cispo_loss_value():
    plan, logp = planned("cispo", 1)
    expected = [-2 * min(r, 5) * (-3 + log(r)) for r in RATIOS]
    assert (plan.token_loss(logp) * len(RATIOS)).tolist() == pytest.approx(expected, rel=1e-12)


def test_what_clipping_stops():
    for spec in ("cispo", "sapo", "ce_gppo"):
        plan, logp = planned(spec, 1)
        assert not plan.clipped(logp).any()
    plan, logp = planned("ce_gppo", 1, beta_high=0.0)
    assert plan.clipped(logp).tolist() == [False, False, False, True, True]
    plan, logp = planned("ce_gppo", -1, beta_low=0.0)
    assert plan.clipped(logp).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("cispo", {"eps_low": -1.0}),
        ("ce_gppo", {"beta_low": -0.1}),
        ("ce_gppo", {"dual_clip": 1.0}),
        ("sapo", {"tau_positive": 0.0}),
    ],
)
def test_bad_settings(spec, settings):
    with pytest.raises(ValueError, match=f"{spec}: {next(iter(settings))} must"):
        make(spec, **settings)
