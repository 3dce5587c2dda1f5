from dataclasses import replace
from math import log

import pytest
import torch
from helpers import sampled_tokens

from entrostat import CompositionWarning, Tokens, entropy_change, make

P = [0.5, 0.5, 0.2]
H = 1.0
A = [2.0, -1.0, 1.0]
FLOW = [-a * (1 - p) ** 2 * (log(p) + H) for p, a in zip(P, A, strict=True)]  # −, +, +
GAIN, LOSS = FLOW[1] + FLOW[2], -FLOW[0]
BALANCE = (LOSS - GAIN) / (LOSS + GAIN)


def tokens() -> Tokens:
    logp = torch.tensor(P, dtype=torch.float64).log()
    return Tokens(logp=logp, old_logp=logp, advantage=torch.tensor(A).double(), entropy=torch.full_like(logp, H))


@pytest.mark.parametrize(
    ("settings", "up", "down"),
    [
        ({}, 1 + BALANCE, 1 - BALANCE),
        ({"variant": "static"}, 1.001, 0.999),
        ({"variant": "static", "lambda_static": 0.5}, 1.5, 0.5),
        ({"variant": "plus_only"}, 1 + BALANCE, 1),
        ({"variant": "minus_only"}, 1, 1 - BALANCE),
    ],
)
def test_weights_by_hand(settings, up, down):
    assert FLOW[0] < 0 < FLOW[1]
    plan = make("opefo", **settings).plan(tokens())
    assert plan.weight.tolist() == pytest.approx([down, up, up], rel=1e-12)


@pytest.mark.parametrize("estimator", ["paper", "exact"])
def test_net_flow_is_zero(estimator):
    t = sampled_tokens(5, 200)
    t = Tokens(**{**vars(t), "old_logp": t.logp})
    plan = make("opefo", estimator=estimator).plan(t)
    if estimator == "paper":
        flow = entropy_change.opefo(t.logp, t.entropy, t.advantage)
    else:
        flow = entropy_change.exact(t.logp, t.entropy, t.s2, t.s2l, t.advantage)
    net = (plan.weight * flow).sum(-1).abs() / flow.abs().sum(-1)
    assert net.max() < 1e-14
    assert (plan.weight >= 0).all()


def test_the_exact_flow_is_that_of_the_importance_weighted_step():
    t = sampled_tokens(200)
    ratio = (t.logp - t.old_logp).exp()
    flow = entropy_change.exact(t.logp, t.entropy, t.s2, t.s2l, t.advantage * ratio)
    weight = make("opefo", estimator="exact").plan(t).weight
    assert (weight * flow).sum().abs() < 1e-14 * flow.abs().sum()


def test_zero_flow_leaves_weights_at_one():
    t = Tokens(**{**vars(tokens()), "advantage": torch.zeros(3).double()})
    plan = make("opefo").plan(t)
    assert plan.weight.tolist() == [1, 1, 1]
    assert plan.info["opefo/lambda"] == 0
    partly = Tokens(**{**vars(tokens()), "advantage": torch.tensor([2.0, 0.0, 1.0]).double()})
    assert make("opefo", variant="static", lambda_static=0.5).plan(partly).weight.tolist() == [0.5, 1, 1.5]


def test_all_flow_one_way_is_stopped():
    t = Tokens(**{**vars(tokens()), "advantage": torch.tensor([2.0, 1.0, -1.0]).double()})
    assert make("opefo").plan(t).weight.tolist() == [0, 0, 0]


def test_bad_settings():
    with pytest.raises(ValueError, match="variant must be one of both, static, plus_only, minus_only"):
        make("opefo", variant="none")
    with pytest.raises(ValueError, match="estimator must be one of paper, exact"):
        make("opefo", estimator="none")


@pytest.mark.parametrize("bad", [-torch.inf, torch.nan])
@pytest.mark.parametrize("estimator", ["paper", "exact"])
def test_a_flow_that_is_not_finite_counts_as_none(bad, estimator):
    """The other tokens are balanced as if that token were not there, and it keeps weight 1."""
    good = sampled_tokens(1, 6)
    more = good.select(torch.tensor([0, 1, 2, 3, 4, 5, 0]))
    more.logp[..., -1] = bad
    rule = make("opefo", estimator=estimator)
    weight = rule.plan(more).weight
    torch.testing.assert_close(weight[..., :-1], rule.plan(good).weight, rtol=1e-12, atol=0)
    assert weight[..., -1].tolist() == [1]


def test_samples_of_an_earlier_policy_are_told():
    t = tokens()
    with pytest.warns(CompositionWarning, match="'opefo' is strictly on-policy by its rule"):
        make("opefo").plan(replace(t, old_logp=t.logp - 0.1))
