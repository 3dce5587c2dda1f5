"""lp_reg against penalties worked out by hand: whom it shields, how hard it pulls, and where that holds a token."""

from math import inf, log, sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrostat import Tokens, make

OLD = [0.02, 0.02, 0.05, 0.5, 0.04]
KEPT = 0.8
"""Probability of what the proxy keeps."""
NOISE = 1
"""The token that it leaves out."""


def tokens(ratio: float = 1.0, advantage=(-1.0, -1.0, -1.0, -1.0, 1.0), **changes) -> Tokens:
    old = torch.tensor(OLD, dtype=torch.float64).log()
    proxy = old - log(KEPT)
    proxy[NOISE] = -inf
    fields = {"logp": old + log(ratio), "old_logp": old, "proxy_logp": proxy}
    return Tokens(advantage=torch.tensor(advantage, dtype=torch.float64), **{**fields, **changes})


def penalised(some: Tokens, **settings) -> list[int]:
    """Which tokens have a penalty."""
    coef = make("lp_reg", **settings).plan(some).ref_coef
    return coef.nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"share": 1.0}, [0, 2, 3]),  # not the noise, not the success
        ({"share": 0.8}, [0, 2]),  # not the likeliest
        ({"share": 0.6}, [0]),  # the success takes a place
        ({"share": 0.75, "preset": "released"}, [0, 2]),  # three of the four failures, the noise among them
        ({"share": 0.99, "preset": "released"}, [0, 2]),
        ({"share": 1.0, "preset": "released"}, [0, 2, 3]),
    ],
)
def test_who_is_shielded(settings, expected):
    assert penalised(tokens(), **settings) == expected


def test_nobody_is_where_the_policy_is_not_below_the_proxy():
    assert penalised(tokens(1 / KEPT), share=1.0) == []
    assert penalised(tokens(1.01 / KEPT), share=1.0) == []
    assert penalised(tokens(0.99 / KEPT), share=1.0) == [0, 2, 3]
    assert penalised(tokens(advantage=[1.0] * 5), share=1.0, preset="released") == []
    assert penalised(tokens(advantage=[-1.0, -1.0, 0.0, -1.0, 1.0]), share=1.0) == [0, 3]
    rounded = tokens().old_logp * (1 - 1e-15)  # a proxy without noise to leave out is the policy
    assert penalised(tokens(proxy_logp=rounded), share=1.0) == []


def test_loss_by_hand():
    """−rA + β·(e^x − x − 1) with x = log(1/(P·r)), each token with a fifth of the loss."""
    some = tokens(0.5)
    plan = make("lp_reg", share=1.0, beta=3.0).plan(some)
    x = log(2 / KEPT)
    penalty = 3 * (2 / KEPT - x - 1)
    expected = torch.tensor([0.5 + penalty, 0.5, 0.5 + penalty, 0.5 + penalty, -0.5], dtype=torch.float64) / 5
    torch.testing.assert_close(plan.token_loss(some.logp), expected, rtol=1e-12, atol=0)
    assert float(plan.info["lp_reg/shielded"]) == pytest.approx(0.6)
    assert float(plan.info["lp_reg/pull"]) == pytest.approx(2 / KEPT - 1, rel=1e-12)


@given(st.floats(0.1, 5), st.floats(0.1, 10), st.floats(0.5, 1.0))
def test_where_a_token_is_held(size, beta, kept):
    """Push and pull are equal where |A|·r² + β·r = β/P; below it a step gives probability back, above it takes some."""
    held = (sqrt(beta**2 + 4 * size * beta / kept) - beta) / (2 * size)
    for ratio, sign in ((held, 0), (0.99 * held, -1), (1.01 * held, 1)):
        old = torch.tensor([-3.0], dtype=torch.float64)
        proxy, logp = old - log(kept), old + log(ratio)
        if float(proxy - logp) <= 1e-9:
            continue
        some = Tokens(logp=logp, old_logp=old, proxy_logp=proxy, advantage=torch.full_like(old, -size))
        slope = float(make("lp_reg", beta=beta).plan(some).coefficients(logp)[0])
        assert slope == pytest.approx(0, abs=1e-9 * (size + beta)) if sign == 0 else slope * sign > 0


def test_ratios_are_bounded_by_ten_from_above_alone():
    ratio = torch.tensor([9.9, 10.1, 0.01], dtype=torch.float64)
    old = torch.full((3,), -5.0, dtype=torch.float64)
    advantage = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    some = Tokens(logp=old + ratio.log(), old_logp=old, proxy_logp=old, advantage=advantage)
    controller = make("lp_reg")
    assert controller.plan(some).clipped(some.logp).tolist() == [False, True, False]
    assert make("clip_higher+lp_reg").plan(some).clipped(some.logp).tolist() == [True, True, True]


def test_tokens_of_no_probability_stay_numbers():
    none = torch.full((5,), -inf, dtype=torch.float64)
    some = tokens(logp=none, proxy_logp=none)
    plan = make("lp_reg", share=1.0).plan(some)
    assert plan.ref_coef.eq(0).all()
    assert plan.token_loss(some.logp).isfinite().all()


def test_one_penalty_on_a_divergence_is_all_that_a_plan_has():
    with pytest.raises(ValueError, match="'kl_ref' and 'lp_reg' contradict each other: both penalise the divergence"):
        make("kl_ref+lp_reg")


def test_the_proxy_is_told_through_a_chain():
    assert make("steer+lp_reg", min_p=0.3).proxy.min_p == 0.3
    assert make("steer").proxy is None
