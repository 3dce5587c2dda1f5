"""STEER, figures 2 and 14 to 16. Training runs are those of QUICK effort: 24 states, 80 rollouts, 2 seeds."""

import pytest

from toybandit.reproduce.registry import QUICK
from toybandit.reproduce.steer_quadrants import (
    CORNERS,
    four_schemes,
    graded,
    lowering,
    quadrant_plane,
    raising,
    towards,
)

pytestmark = pytest.mark.slow


def test_entropy_is_raised_by_doubling_what_raises_it():
    assert [towards(corner.raises, upwards=True) for corner in CORNERS.values()] == [0, 2, 0, 2]
    assert [towards(corner.raises, upwards=False) for corner in CORNERS.values()] == [2, 0, 2, 0]


def test_quadrants_have_their_direction(drawn_from_its_table):
    data = quadrant_plane(QUICK)
    for name in ("exploitation", "correction"):
        assert data.numbers[f"{name}: as claimed"] > 0.99
    for name in ("exploration", "suppression"):
        assert 0.85 < data.numbers[f"{name}: as claimed"] < 1  # some lie between e^(−H) and the true boundary
    assert data.table["tokens"].sum() > 0
    assert drawn_from_its_table(quadrant_plane, data)


def test_graded_counts_growing_effects():
    effects = {
        f"{name}, {share}": sign * size
        for name, sign in zip(CORNERS, (1, -1, 1, -1), strict=True)
        for share, size in (("5%", 1.0), ("10%", 2.0), ("20%", 3.0))
    }
    assert graded(effects) == 4
    assert graded({**effects, "exploration, 20%": -1.5}) == 3


def test_four_schemes_lift_the_entropy_where_rewards_are_noisy(drawn_from_its_table):
    data = four_schemes(QUICK)
    assert all(data.numbers[f"{name}: lift, noisy"] > 0 for name in ("exploitation", "exploration", "correction"))
    lifts = {env: sum(data.numbers[f"{name}: lift, {env}"] for name in CORNERS) for env in ("noisy", "on", "det")}
    assert min(lifts["noisy"], lifts["on"]) > 3 * abs(lifts["det"])
    assert drawn_from_its_table(four_schemes, data)


def test_a_fifth_of_a_quadrant_moves_the_entropy_as_claimed(drawn_from_its_table):
    up, down = raising(QUICK), lowering(QUICK)
    for name in CORNERS:
        assert up.numbers[f"{name}, 20%"] > 0.03
        assert down.numbers[f"{name}, 20%"] < -0.03
    assert drawn_from_its_table(raising, up)
