"""dcpo: bounds by the probability that a token had."""

from math import log, sqrt

import pytest
import torch

from entrostat import Tokens, make


def plan_of(q: list[float], sign: float = 1.0, ratio: float = 1.0, **settings):
    old = torch.tensor(q, dtype=torch.float64).log()
    tokens = Tokens(logp=old + log(ratio), old_logp=old, advantage=torch.full_like(old, sign))
    return make("dcpo", **settings).plan(tokens), old + log(ratio)


def test_bounds_by_hand():
    plan, _ = plan_of([1.0, 0.8, 0.1, 1e-4])
    low = [0.5 + 0.5 * sqrt(1 - 0.64), 0.5 + 0.5 * sqrt(1 - 0.8), 0.5, 0.5]
    high = [0.5 + 0.5 * sqrt(1.8), 0.5 + 0.5 * sqrt(2), 2.0, 10.0]
    assert plan.clip_low.tolist() == pytest.approx(low, rel=1e-12)
    assert plan.clip_high.tolist() == pytest.approx(high, rel=1e-12)


def test_rare_tokens_are_stopped_later():
    plan, logp = plan_of([0.65, 0.1, 0.001], ratio=1.5)
    assert plan.clipped(logp).tolist() == [True, False, False]
    assert (3 * plan.coefficients(logp)[0]).tolist() == pytest.approx([0, -1.5, -1.5], rel=1e-12)
    plan, logp = plan_of([1.0, 0.1, 0.001], sign=-1.0, ratio=0.6)
    assert plan.clipped(logp).tolist() == [True, False, False]
    assert plan_of([0.1], ratio_max=1.3)[0].clip_high.item() == pytest.approx(1.3, rel=1e-15)


def test_dual_clip_stops_grown_tokens_with_a_negative_advantage():
    for settings, expected in (({}, 12.0), ({"dual_clip": 5.0}, 0.0), ({"preset": "released"}, 0.0)):
        plan, logp = plan_of([0.001], sign=-1.0, ratio=12.0, **settings)
        assert plan.coefficients(logp)[0].item() == pytest.approx(expected, rel=1e-12)
        assert plan.clipped(logp).tolist() == [expected == 0]
    assert plan.loss(logp).item() == pytest.approx(10.0, rel=1e-12)
    assert plan.clip_low.item() == 0.5
    assert plan_of([1.0], preset="released")[0].clip_high.item() == pytest.approx(0.5 + 0.5 * sqrt(1 + 4 * 0.28))


def test_a_probability_that_is_zero_in_float32():
    old = torch.tensor([-200.0])
    plan = make("dcpo").plan(Tokens(logp=old, old_logp=old, advantage=torch.ones(1)))
    assert plan.clip_low.tolist() == [0.5]
    assert plan.clip_high.tolist() == [10.0]


def test_a_bound_of_zero_width_at_a_probability_that_is_zero_in_float32():
    old = torch.tensor([-200.0, -torch.inf])
    plan = make("dcpo", eps_low=0.0, eps_high=0.0).plan(Tokens(logp=old, old_logp=old, advantage=torch.ones(2)))
    assert plan.clip_low.tolist() == [1, 1]
    assert plan.clip_high.tolist() == [1, 1]


@pytest.mark.parametrize("settings", [{"eps_low": -0.1}, {"eps_high": -0.1}, {"ratio_max": 1.0}, {"dual_clip": 0.5}])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match=f"dcpo: {next(iter(settings))} must"):
        make("dcpo", **settings)
