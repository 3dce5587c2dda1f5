"""BAPO's share of the loss, by hand, and its runs."""

import math

import pytest
import torch

from entrostat import Tokens
from toybandit.claims.balance import CONTROLLERS, balanced, share_at
from toybandit.claims.registry import Effort


@pytest.mark.parametrize(("low", "high", "share"), [(0.8, 1.2, 1.2 / 2), (0.8, 3.0, 2 / 2.8), (0.4, 1.2, 1.2 / 1.7)])
def test_a_clipped_token_counts_with_its_bound(low, high, share):
    """Shares of a success with ratio 2 and a failure with ratio .5."""
    ratio = torch.tensor([[math.log(2.0), math.log(0.5)]], dtype=torch.float64)
    tokens = Tokens(
        logp=ratio - 3, old_logp=torch.full_like(ratio, -3), advantage=torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    )
    assert float(share_at(tokens, low, high)) == pytest.approx(share)


def test_runs_differ_in_nothing_but_the_controller():
    runs = balanced(Effort(instances=1, runs=2, states=4, rollouts=6))
    assert set(runs) == set(CONTROLLERS)
    starts = [run.entropy[:, 0] for run in runs.values()]
    assert all((start == starts[0]).all() for start in starts)
