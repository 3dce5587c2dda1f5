"""Weights that give a wanted flow, and none that would cost less."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrostat import LocalReduce
from entrostat.numbers.water_level import water_level

SEEDS = st.integers(0, 10**6)


def test_weights_by_hand_and_at_the_price_of_flow():
    """Flows −3, 1, 1 and no wanted change: ν = (3 − 2)/(3 + 2), weights 1 ± ν."""
    flow = torch.tensor([-3.0, 1.0, 1.0], dtype=torch.float64)
    limit = torch.tensor(2.0)
    found = water_level(flow, flow.abs(), torch.tensor(0.0).double(), limit, LocalReduce())
    assert found.weight.tolist() == pytest.approx([0.8, 1.2, 1.2], rel=1e-15)
    assert float(found.level) == pytest.approx(0.2, rel=1e-15)
    # At the price 1: m = 1 + ν·φ, −1 + 11ν = 3·(1/3), so ν = 2/11.
    found = water_level(flow, torch.ones(3).double(), torch.tensor(1 / 3, dtype=torch.float64), limit, LocalReduce())
    assert found.weight.tolist() == pytest.approx([1 - 6 / 11, 13 / 11, 13 / 11], rel=1e-14)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(seed=SEEDS, wanted=st.floats(-3, 3), m_max=st.floats(1.01, 5), price=st.sampled_from(["one", "flow", "own"]))
def test_water_level_meets_the_wanted_flow_or_its_bounds(seed, wanted, m_max, price):
    generator = torch.Generator().manual_seed(seed)
    flow = torch.randn(2, 40, generator=generator, dtype=torch.float64) ** 3
    own = torch.rand(2, 40, generator=generator, dtype=torch.float64) + 1e-3
    g = {"one": torch.ones_like(flow), "flow": flow.abs(), "own": own}[price]
    target = torch.full((2,), wanted, dtype=torch.float64)
    found = water_level(flow, g, target, torch.tensor(m_max), LocalReduce())
    assert ((found.weight >= 0) & (found.weight <= m_max + 1e-6)).all()
    achieved = (found.weight * flow).mean(-1)
    torch.testing.assert_close(found.achieved, achieved, rtol=1e-12, atol=1e-14)
    most, least = m_max * flow.clamp(min=0).mean(-1), m_max * flow.clamp(max=0).mean(-1)
    within = torch.minimum(torch.maximum(target, least), most)
    torch.testing.assert_close(achieved, within, rtol=1e-6, atol=1e-12)


def test_each_run_has_its_own_bounds_and_reach():
    """Of three runs one can have the flow that it wants, one cannot rise and one cannot fall as far."""
    flow = torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    price = torch.rand(40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    wanted, m_max = torch.tensor([0.1, 9.0, -9.0], dtype=torch.float64), torch.tensor([1.2, 2.0, 3.0])
    together = water_level(flow.expand(3, 40), price.expand(3, 40), wanted, m_max, LocalReduce())
    assert together.weight.amin(-1).tolist() == [0, 0, 0]
    torch.testing.assert_close(together.weight.amax(-1), m_max.double())
    torch.testing.assert_close(together.weight[1], torch.where(flow > 0, 2.0, 0.0).double())
    torch.testing.assert_close(together.weight[2], torch.where(flow < 0, 3.0, 0.0).double())
    torch.testing.assert_close(together.achieved, (together.weight * flow).mean(-1), rtol=1e-12, atol=0)
    assert float(together.achieved[0]) == pytest.approx(0.1, rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=SEEDS, wanted=st.sampled_from([-3.0, -0.5, 0.5, 3.0]))
def test_what_answers_beside_the_weights_reaches_where_they_end(seed, wanted):
    """mean clip(1 + ν·φ/g, 0, 2)·φ + linear·ν is what was wanted, also beyond what weights alone can give."""
    generator = torch.Generator().manual_seed(seed)
    flow = torch.randn(60, generator=generator, dtype=torch.float64)
    price = 10 ** (3 * torch.randn(60, generator=generator, dtype=torch.float64))  # tokens meet their bounds one by one
    target, linear = (torch.tensor(x, dtype=torch.float64) for x in (wanted, 1e-3))
    found = water_level(flow, price, target, torch.tensor(2.0), LocalReduce(), linear=linear)
    torch.testing.assert_close(found.weight, (1 + found.level * flow / price).clamp(0, 2), rtol=1e-9, atol=1e-9)
    assert float((found.weight * flow).mean() + linear * found.level) == pytest.approx(wanted, rel=1e-9)
    assert float(found.achieved) == pytest.approx(wanted, rel=1e-9)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=SEEDS, wanted=st.floats(-0.5, 0.5))
def test_no_other_weights_with_the_wanted_flow_cost_less(seed, wanted):
    generator = torch.Generator().manual_seed(seed)
    flow = torch.randn(40, generator=generator, dtype=torch.float64)
    price = torch.rand(40, generator=generator, dtype=torch.float64) + 0.01
    found = water_level(flow, price, torch.tensor(wanted, dtype=torch.float64), torch.tensor(2.0), LocalReduce())
    pair = torch.randperm(40, generator=generator)[:2]  # moving two weights at a fixed total flow
    for size in (1e-3, -1e-3):
        other = found.weight.clone()
        other[pair] += size * torch.stack([1 / flow[pair[0]], -1 / flow[pair[1]]])
        if bool(((other >= 0) & (other <= 2)).all()):
            assert (price * (other - 1) ** 2).sum() >= (price * (found.weight - 1) ** 2).sum() - 1e-15
