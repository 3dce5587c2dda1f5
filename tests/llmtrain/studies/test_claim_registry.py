"""Verdicts from the intervals of margins, and the choice of claims."""

import numpy as np
import pytest

from llmtrain.studies import claims_page  # noqa: F401 (registers the claims)
from llmtrain.studies.claim_registry import CLAIMS, FAILS, HOLDS, OPEN, Margin, judged


def margin(*values):
    return Margin("m", np.array(values))


def test_interval_by_hand():
    """Mean 2, standard deviation 1, so 2 ± 4.302653/√3."""
    low, high = margin(1, 2, 3).interval
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ([(1.0, 1.1, 0.9)], HOLDS),
        ([(1.0, 1.1, 0.9), (-1.0, -1.1, -0.9)], FAILS),
        ([(1.0, 1.1, 0.9), (1, 2, -1)], OPEN),
        ([(0.0, 0.0, 0.0)], OPEN),
        ([(float("nan"), 1.0, 1.0)], OPEN),
    ],
)
def test_verdict(margins, verdict):
    assert judged("", "", tuple(margin(*values) for values in margins)).verdict == verdict


def test_choice():
    assert [one.name for one in CLAIMS.choose(["token-flow"], "clip")] == ["clip-thresholds", "clip-free", "token-flow"]
    assert len(CLAIMS.choose()) == len(CLAIMS)
    with pytest.raises(ValueError, match=r"'token-flows'; .*token-flow"):
        CLAIMS.choose(["token-flows"])
    with pytest.raises(ValueError, match=r"'xyz' .*clip-thresholds"):
        CLAIMS.choose(pattern="xyz")


def test_each_claim_has_a_threshold_a_null_and_faults():
    for one in CLAIMS.values():
        assert all((one.threshold, one.null, one.needs))
        assert len(one.mutations) >= 2
