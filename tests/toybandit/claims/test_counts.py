"""Intervals of counts, and the chance that fresh runs say otherwise."""

import numpy as np
import pytest

from toybandit.claims.counts import Count, count


def test_wilson_interval():
    """3 of 8, by hand: (.375 + 1.96²/16 ± 1.96·√(.375·.625/8 + (1.96/16)²)) / (1 + 1.96²/8)."""
    assert Count(3, 8).interval == pytest.approx((0.1368, 0.6943), abs=5e-5)


def test_intervals_stay_within_0_and_1():
    assert Count(0, 16).interval == (0.0, pytest.approx(0.1936, abs=5e-5))
    assert Count(16, 16).interval == (pytest.approx(0.8064, abs=5e-5), 1.0)


def test_doubt():
    assert Count(3, 8).doubt == pytest.approx((1 - 0.1368) ** 8, abs=1e-3)
    assert Count(0, 16).doubt == pytest.approx(1 - (1 - 0.1936) ** 16, abs=1e-3)


def test_text():
    assert str(count(np.array([True, False, True, True, False, False, False, False]))) == (
        "3 of 8 runs (95%: 14% to 69%)"
    )
