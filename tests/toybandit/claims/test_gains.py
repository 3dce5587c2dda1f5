"""The condition of EntroPIC's proof: where it lies in the exact region, and that the loops run there."""

import pytest
import torch

from entrostat.numbers import pi_control
from toybandit.claims.gains import POINTS, allowed, random_gains, settled, spectral_radius


@pytest.mark.parametrize(
    ("s", "c", "fine"),
    [(1.0, 0.99, True), (1.0, 1.01, False), (0.5, 0.74, True), (0.5, 0.76, False), (2.1, 0.1, False)],
)
def test_condition(s, c, fine):
    """(1 − s)² < 1 − c: c < 1 at s = 1, and c < ¾ at s = ½."""
    assert bool(allowed(torch.tensor(s), torch.tensor(c))) == fine


def test_a_third_of_the_stable_gains_is_allowed():
    """Areas ∫ (2s − s²) ds = 4/3 and 4."""
    s, c = random_gains(200_000)
    inside, stable = allowed(s, c), pi_control.stable(1.0, s, c)
    assert not (inside & ~stable).any()
    assert (inside.sum() / stable.sum()).item() == pytest.approx(1 / 3, abs=0.01)


def test_a_sign_error_in_the_condition_is_seen():
    s, c = random_gains(2000)
    wrong = ((1 - s) ** 2 < 1 + c) & (c > 0) & (c < 1)
    assert (spectral_radius(s, c)[wrong] > 1).any()


def test_loops_that_are_run_settle_where_they_are_stable():
    stable = [bool(pi_control.stable(1.0, *point)) for point in POINTS]
    assert settled(POINTS) == stable == [True] * 6 + [False] * 3
