"""STEER, figures 3 and 17."""

import pytest

from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer_clipping import BOUNDS, clipping_bounds, clipping_statistics, one_sign

pytestmark = pytest.mark.slow


def test_clipping_stops_unlikely_tokens(drawn_from_its_table):
    data = clipping_statistics(QUICK)
    for kind in ("high", "low"):
        assert data.numbers[f"mean p, {kind}, clipped"] < 0.6 * data.numbers[f"mean p, {kind}, all"]
        assert 0.05 < data.numbers[f"share, {kind}"] < 0.3
    likely = data.table["p"] > 0.9
    assert (data.table["clipped"][likely] == 0).all()  # p > .9 cannot grow by a fifth
    assert drawn_from_its_table(clipping_statistics, data)


def test_bounds_order_the_entropy(drawn_from_its_table):
    data = clipping_bounds(QUICK)
    high, low = ([data.numbers[f"{key} = {bound:g}"] for bound in BOUNDS[:3]] for key in ("eps_high", "eps_low"))
    assert high == sorted(high)
    assert low == sorted(low, reverse=True)
    assert data.numbers["eps_high = 0.8, rebound"] < 0.15  # entropy does not grow back
    assert drawn_from_its_table(clipping_bounds, data)


def test_one_sign_orders_the_entropy_only_with_reused_samples(drawn_from_its_table):
    data = one_sign(QUICK)
    off, on = (
        [data.numbers[f"{name}, {env}"] for name in ("positives only", "GRPO", "negatives only")]
        for env in ("noisy", "on")
    )
    assert off[0] < off[1] - 0.1 < off[2] - 0.2
    assert on[1] < min(on[0], on[2])  # half a step, whichever half
    assert abs(on[0] - on[2]) < 0.3 * (off[2] - off[0])
    assert drawn_from_its_table(one_sign, data)
