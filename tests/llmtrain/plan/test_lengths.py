import math
from statistics import fmean

import pytest

from llmtrain.plan.lengths import Lengths, LogNormalLengths


@pytest.mark.parametrize("mean", [1, 100, 1000, 4000, 6000])
def test_moments_are_those_of_the_quantiles(mean):
    lengths = Lengths(mean, 8192)
    typical = lengths.quantiles(200_000)
    assert sum(typical) / len(typical) == pytest.approx(mean, rel=1e-3)
    assert sum(x * x for x in typical) / len(typical) == pytest.approx(lengths.mean_square, rel=2e-3)
    assert sum(x >= 8192 for x in typical) / len(typical) == pytest.approx(lengths.cut_share, abs=1e-5)
    assert typical == sorted(typical)
    assert lengths.longest(200_000) == pytest.approx(typical[-1])


def test_far_from_the_limit_it_is_exponential():
    lengths = Lengths(100, 1e6)
    assert lengths.scale == pytest.approx(100)
    assert lengths.mean_square == pytest.approx(2 * 100**2)
    assert lengths.quantiles(2)[1] == pytest.approx(100 * math.log(4))


def test_at_the_limit_all_are_cut():
    lengths = Lengths(8191.99, 8192)
    assert lengths.cut_share > 0.99
    assert lengths.mean_square == pytest.approx(8192**2, rel=1e-3)


@pytest.mark.parametrize("mean", [8192, 9000])
def test_a_mean_beyond_the_limit(mean):
    with pytest.raises(ValueError, match=f"mean_response_length {mean} must be below max_response_length 8192"):
        Lengths(mean, 8192)


@pytest.mark.parametrize("mean", [300, 2048, 4000])
def test_log_normal_lengths_have_their_mean_and_tail(mean):
    lengths = LogNormalLengths(mean, 8192, tail=6.0)
    drawn = lengths.quantiles(5000)
    assert fmean(drawn) == pytest.approx(mean, rel=2e-3)
    assert drawn == sorted(drawn)
    assert drawn[-1] <= 8192
    assert lengths.longest(1) == pytest.approx(drawn[2500], rel=1e-3)
    if mean == 300:  # the limit cuts next to nothing
        assert drawn[4950] / drawn[2500] == pytest.approx(6.0, rel=0.02)
