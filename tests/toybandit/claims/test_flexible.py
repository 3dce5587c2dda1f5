"""Faults of the moving bounds: exchanged, or not widened."""

import pytest
import torch

from entrostat import Tokens, make
from toybandit.claims.flexible import FAULTS


def bounds() -> tuple[float, float]:
    """Return the bounds of the ratio of a token with p = 0 at the start of increase-then-decrease."""
    old = torch.tensor([-60.0], dtype=torch.float64)
    tokens = Tokens(logp=old, old_logp=old, advantage=torch.ones(1, dtype=torch.float64))
    plan = make("flexible_clip").plan(tokens)
    return float(plan.clip_low), float(plan.clip_high)


def test_bounds_of_an_unlikely_token():
    exchanged, narrow = FAULTS
    assert bounds() == pytest.approx((0.8, 1.5))
    with exchanged():
        assert bounds() == pytest.approx((0.7, 1.2))
    with narrow():
        assert bounds() == pytest.approx((0.8, 1.2))
