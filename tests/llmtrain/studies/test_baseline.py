"""Differences from a baseline, computed by hand, and the share of false ones under the null."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from entrostat.about.lineup import Entry
from llmtrain.studies.baseline import ALIKE, CONFIDENCE, HIGHER, LOWER, crossing, curve, differences
from llmtrain.studies.comparison import Run
from llmtrain.studies.standings import Standing


def entry(name, values, same_as=""):
    return Standing(entry=Entry(name), same_as=same_as, values={"reward": np.array(values, dtype=float)})


def test_two_entries_by_hand():
    found = differences([entry("ppo", [1.0, 2.0, 3.0]), entry("steer", [4.0, 5.0, 6.0])], "ppo", "reward")
    only = found["steer"]
    assert list(found) == ["steer"]
    assert only.mean == 3.0
    assert only.half == pytest.approx(2.776445 * sqrt(2 / 3))  # variance 1 in both; t with 4 degrees of freedom, 97.5%
    assert only.verdict == HIGHER
    assert only.interval == pytest.approx((3 - only.half, 3 + only.half))
    assert only.seeds == 2  # 2·(2.776/3)² = 1.71


def test_three_entries_share_the_error():
    found = differences(
        [entry("ppo", [0.0, 2.0]), entry("low", [-9.0, -7.0]), entry("near", [1.0, 3.0])], "ppo", "reward"
    )
    width = 4.176535  # t with 3 degrees of freedom, 1 − .05/4
    assert found["low"].half == pytest.approx(width * sqrt(2))
    assert found["low"].verdict == LOWER
    assert found["near"].verdict == ALIKE
    assert found["near"].seeds == int(np.ceil(4 * width**2))
    alone = differences(
        [entry("ppo", [0.0, 2.0]), entry("low", [-9.0, -7.0]), entry("x", [1.0, 3.0])], "ppo", "reward", 1
    )
    assert alone["low"].half == pytest.approx(3.182446 * sqrt(2))  # 97.5%


def test_two_entries_with_different_numbers_of_seeds_have_students_interval():
    plain, few = [0.71, 0.79, 0.83, 0.77, 0.78], [0.91, 0.84]
    only = differences([entry("ppo", plain), entry("steer", few)], "ppo", "reward")["steer"]
    theirs = stats.ttest_ind(few, plain).confidence_interval(CONFIDENCE)
    assert only.interval == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_an_entry_with_fewer_seeds_has_the_wider_interval():
    """One variance of all: squares of deviations 8, 2, 2 and 0 over 3 + 1 + 1 + 0 degrees of freedom."""
    of = [entry("ppo", [0.0, 2.0, -2.0, 0.0]), entry("few", [1.0, 3.0]), entry("same", [4.0, 6.0])]
    found = differences([*of, entry("one", [3.0])], "ppo", "reward", comparisons=1)
    width = 2.570582  # t with 5 degrees of freedom, 97.5%
    assert found["few"].half == pytest.approx(width * sqrt(12 / 5 * (1 / 2 + 1 / 4)))
    assert found["few"].half == found["same"].half
    assert found["one"].half == pytest.approx(width * sqrt(12 / 5 * (1 + 1 / 4)))


def test_equal_entries_cannot_be_told_apart_with_any_number_of_seeds():
    found = differences([entry("ppo", [1.0, 2.0]), entry("aepo", [1.0, 2.0])], "ppo", "reward")
    assert found["aepo"].verdict == ALIKE
    assert found["aepo"].seeds == 0


def test_a_twin_is_left_out():
    found = differences([entry("ppo", [1.0, 2.0]), entry("aepo", [1.0, 2.0], same_as="ppo")], "ppo", "reward")
    assert found == {}


def test_under_the_null_one_family_in_twenty_has_a_difference():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        family = [entry(name, rng.standard_normal(3)) for name in ("ppo", "a", "b", "c", "d", "e")]
        wrong += any(one.verdict != ALIKE for one in differences(family, "ppo", "reward").values())
    assert 0.02 < wrong / 400 < 0.06  # below 5%, as the entries share a baseline


def test_one_seed_or_no_baseline_is_refused():
    with pytest.raises(ValueError, match="at least two seeds of an entry"):
        differences([entry("ppo", [1.0]), entry("steer", [1.0])], "ppo", "reward")
    with pytest.raises(ValueError, match="no run of the baseline grpo: there are ppo"):
        differences([entry("ppo", [1.0, 2.0])], "grpo", "reward")


def run(values):
    return Run("run", {}, [{"step": step, "avg": value} for step, value in values.items()])


def test_a_curve_has_the_steps_that_all_runs_have():
    steps, values = curve([run({0: 1.0, 2: 2.0, 4: 3.0}), run({0: 5.0, 4: 7.0})], "avg")
    assert steps.tolist() == [0, 4]
    assert values.tolist() == [[1.0, 3.0], [5.0, 7.0]]


@pytest.mark.parametrize(
    ("values", "at"),
    [([1, 1, 3, 3], 2), ([3, 1, 3, 3], 2), ([3, 3, 3, 3], 0), ([3, 3, 3, 1], None), ([2, 2, 2, 3], 3)],
)
def test_the_crossing_is_where_a_curve_stays_above(values, at):
    baseline = [run(dict.fromkeys(range(4), 2.0))]
    assert crossing([run(dict(enumerate(values)))], baseline, "avg") == at
