from math import inf, log, nan

import pytest
import torch

from entrostat import policy_stats


def test_by_hand():
    s = policy_stats(torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64).log())
    assert s.entropy.item() == pytest.approx(1.5 * log(2), rel=1e-15)
    assert s.s2.item() == pytest.approx(0.375, rel=1e-15)
    assert s.s2l.item() == pytest.approx(-log(2) * (0.25 + 2 * 0.125), rel=1e-15)
    assert s.s2ll.item() == pytest.approx(log(2) ** 2 * (0.25 + 2 * 0.25), rel=1e-15)


def test_impossible_actions():
    s = policy_stats(torch.tensor([0.0, -inf, 0.0], dtype=torch.float64))
    assert s.entropy.item() == pytest.approx(log(2))
    assert s.s2.item() == pytest.approx(0.5)
    assert all(torch.isfinite(x) for x in (s.s2l, s.s2ll))


@pytest.mark.parametrize("row", [[nan, 1.0, 2.0], [inf, 1.0, 2.0], [-inf, -inf, -inf]])
def test_a_row_that_is_no_distribution_has_no_entropy_of_0(row):
    s = policy_stats(torch.tensor([[0.0, 0.0, 0.0], row]))
    assert all(bool(x[1].isnan().all()) for x in s)
    assert s.entropy[0].item() == pytest.approx(log(3))


def test_one_certain_action():
    s = policy_stats(torch.tensor([800.0, 0.0], dtype=torch.float64))
    assert (s.entropy.item(), s.s2.item(), s.s2l.item(), s.s2ll.item()) == (0, 1, 0, 0)


def test_shape_and_dtype():
    s = policy_stats(torch.zeros(2, 3, 5))
    assert s.logp.shape == (2, 3, 5)
    assert all(x.shape == (2, 3) and x.dtype == torch.float32 for x in s[1:])
