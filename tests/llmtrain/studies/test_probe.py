"""Estimated against measured entropy changes, by hand and in cases where the theory is exact."""

import math

import numpy as np
import pytest
import torch

from entrostat import Tokens, make, policy_stats
from llmtrain.studies.probe import ESTIMATORS, Probe, pool, probe, quadrants, quality, table

TOLD = {"step": 0, "optimizer": "SGD", "lr": 1.0, "length": 0.1}
ETA = 1e-6


def tabular(controller="grpo", **settings) -> tuple[Tokens, torch.Tensor, torch.Tensor]:
    """Return tokens with separate logits (N, V), the plan of their mini-batch, and the direction o − p of each."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(200, 11, generator=generator, dtype=torch.float64)
    stats = policy_stats(logits)
    token = torch.randint(11, (200,), generator=generator)
    logp = stats.logp.gather(-1, token[:, None])[:, 0]
    advantage = torch.randn(200, generator=generator, dtype=torch.float64)
    advantage[::10] = 0
    tokens = Tokens(logp=logp, old_logp=logp, advantage=advantage, entropy=stats.entropy, s2=stats.s2, s2l=stats.s2l)
    direction = torch.nn.functional.one_hot(token, 11) - stats.logp.exp()
    return tokens, logits, direction


def test_the_exact_flow_is_exact_where_every_token_has_logits_of_its_own():
    """Δz = η·A·(o − p); the estimate times η is ΔH up to η², and only Ω lacks the collision term."""
    tokens, logits, direction = tabular()
    after = policy_stats(logits + ETA * tokens.advantage[:, None] * direction).entropy
    found = probe(tokens, make("grpo").plan(tokens), after, **TOLD)
    np.testing.assert_allclose(ETA * found.estimates["exact flow"], found.change, atol=1e-11)
    each = table(found)["updated"]
    assert each["exact flow"].scale == pytest.approx(ETA, rel=1e-4)
    assert each["exact flow"].relative_mse_scaled < 1e-6
    assert each["exact flow"].wrong_sign == 0
    assert each["exact flow"].spearman > max(each[name].spearman for name in ESTIMATORS[1:])
    assert each["STEER Ω"].wrong_sign > 0


def test_weight_is_what_multiplies_the_gradient():
    tokens, *_ = tabular()
    plain = probe(tokens, make("grpo").plan(tokens), tokens.entropy, **TOLD)
    np.testing.assert_allclose(plain.weight, tokens.advantage)
    assert plain.updated.tolist() == (tokens.advantage != 0).tolist()
    only_up = probe(tokens, make("positive_only").plan(tokens), tokens.entropy, **TOLD)
    np.testing.assert_allclose(only_up.weight, tokens.advantage.clamp(min=0))
    assert only_up.estimates["STEER Ω"][tokens.advantage.numpy() < 0].tolist() == [0] * int(
        (tokens.advantage < 0).sum()
    )


def test_quality_by_hand():
    """Estimates 1, −2, 2 and changes 2, 1, 1: e·t = 2, e·e = 9, t·t = 6."""
    found = quality(np.array([1.0, -2.0, 2.0]), np.array([2.0, 1.0, 1.0]), lr=0.5)
    assert found.mse == pytest.approx((1 + 9 + 1) / 3)
    assert found.mse_lr == pytest.approx((1.5**2 + 2**2 + 0) / 3)
    assert found.relative_mse_lr == pytest.approx((1.5**2 + 2**2) / 6)
    assert found.scale == pytest.approx(2 / 9)
    assert found.mse_scaled == pytest.approx((6 - 4 / 9) / 3)
    assert found.relative_mse_scaled == pytest.approx(1 - 4 / 54)
    assert found.wrong_sign == pytest.approx(1 / 3)
    assert found.pearson == pytest.approx((2 - 4 / 3) / math.sqrt((9 - 1 / 3) * (6 - 16 / 3)))
    assert found.spearman == pytest.approx(0)  # ranks 1, 0, 2 and 2, .5, .5


def test_an_estimate_of_nothing():
    found = quality(np.zeros(3), np.array([1.0, -1.0, 2.0]), lr=1.0)
    assert (found.scale, found.relative_mse_scaled, found.wrong_sign) == (0, 1, 0)
    assert math.isnan(found.pearson)


def hand(p, weight, change, **told) -> Probe:
    n = len(p)
    return Probe(
        p=np.array(p),
        entropy=np.full(n, 0.7),
        weight=np.array(weight),
        updated=np.array(weight) != 0,
        change=np.array(change),
        estimates={name: np.array(change) / 2 for name in ESTIMATORS},
        **TOLD | told,
    )


def test_quadrants_by_hand():
    """e^(−0.7) = 0.497; p = 0.6 is likely there, and neither likely nor unlikely for the paper's cut."""
    found = hand([0.9, 0.1, 0.1, 0.9, 0.6, 0.9], [1, 1, -1, -2, 1, 0], [-1.0, 2.0, 3.0, 4.0, -8.0, 5.0])
    cut = quadrants(found)
    assert [one["tokens"] for one in cut.values()] == [1, 1, 1, 1]
    assert [one["measured"] for one in cut.values()] == [-1, 2, 3, 4]
    assert [one["as_claimed"] for one in cut.values()] == [1, 1, 0, 1]  # suppression is to lower H
    assert [one["estimated"]["OPEFO"] for one in cut.values()] == pytest.approx([-1, 2, 3, 4])  # at scale 2
    cut = quadrants(found, "entropy")
    assert [one["measured"] for one in cut.values()] == [-9, 2, 3, 4]


def test_updated_and_all_tokens_are_told_apart():
    found = hand([0.5, 0.5, 0.5], [1, -1, 0], [1.0, -1.0, 3.0])
    found.estimates["−Cov"][2] = -100.0
    each = table(found)
    assert each["updated"]["−Cov"].wrong_sign == 0
    assert each["all"]["−Cov"].wrong_sign == pytest.approx(1 / 3)


def test_pooled_and_selected():
    one, two = hand([0.5], [1], [1.0], lr=0.1), hand([0.25, 0.75], [1, 0], [2.0, 3.0], step=4, lr=0.3)
    both = pool([one, two])
    assert both.p.tolist() == [0.5, 0.25, 0.75]
    assert both.estimates["OPEFO"].tolist() == [0.5, 1, 1.5]
    assert (both.step, both.lr) == (0, pytest.approx(0.2))
    some = both.select(np.array([2, 0]), [7, 8], optimizer="other")
    assert (some.p.tolist(), some.change.tolist(), some.optimizer) == ([0.75, 0.5], [7, 8], "other")
    assert some.estimates["−Cov"].tolist() == [1.5, 0.5]
