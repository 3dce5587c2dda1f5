"""Comparisons over runs, and the probability that fresh runs contradict them."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit.claims.checks import (
    Check,
    above,
    below,
    between,
    clearance,
    every,
    numbers_of,
    rising,
    settle,
    student_tail,
    told,
)
from toybandit.claims.registry import FAILS, HOLDS, holds_if

VALUES = np.array([1.0, 2.0, 3.0, 4.0])  # mean 2.5, standard deviation 1.291, standard error .6455


@pytest.mark.parametrize(
    ("t", "degrees", "tail"),
    [
        (0.0, 5, 0.5),
        (1.0, 1, 0.25),
        (2.0, 2, 0.0917517095),
        (2.2621571627, 9, 0.025),
        (3.7328344, 15, 0.001),
        (inf, 7, 0),
    ],
)
def test_student_tail(t, degrees, tail):
    assert student_tail(t, degrees) == pytest.approx(tail, rel=1e-6)


def test_above_and_below():
    assert above(VALUES, 2.0).holds
    assert not below(VALUES, 2.0).holds
    assert above(VALUES, 2.0).doubt == pytest.approx(student_tail(0.5 / (2**0.5 * 0.6454972), 3))
    assert above(VALUES, 2.0).doubt == below(VALUES, 2.0).doubt
    assert above(VALUES, 2.5) == Check(False, pytest.approx(0.5))


def test_distance_in_standard_errors():
    """Mean 3 of 2 and 4: a standard error of 1. Equal runs have none."""
    assert clearance(np.array([2.0, 4.0])) == pytest.approx(3.0)
    assert clearance(np.array([2.0, 4.0]), 5.0) == pytest.approx(2.0)
    assert (clearance(np.ones(2)), clearance(np.zeros(2))) == (inf, 0.0)


def test_runs_that_all_agree_leave_no_doubt():
    assert above(np.ones(4)) == Check(True, 0.0)
    assert above(-np.ones(4)) == Check(False, 0.0)


def test_between_needs_both_sides():
    assert between(VALUES, 2.0, 3.0).holds
    assert not between(VALUES, 2.6, 3.0).holds
    assert not between(VALUES, 2.0, 2.4).holds


def test_rising_pairs_the_runs():
    """The runs differ by far more than the settings do, but every run agrees on the settings."""
    later = VALUES + np.array([0.1, 0.11, 0.1, 0.11])
    assert rising(VALUES, later).holds
    assert rising(VALUES, later).doubt < 1e-3
    assert not rising(VALUES, later, VALUES).holds


def test_doubt_of_several_checks():
    sure, likely, wrong, far = Check(True, 1e-6), Check(True, 0.1), Check(False, 0.2), Check(False, 1e-5)
    assert sure & likely == Check(True, pytest.approx(0.1 + 1e-6))
    assert sure & wrong == wrong
    assert wrong & far == far
    assert every([sure, wrong, likely, far]) == far
    assert every([]) == Check(True, 0.0)


def test_verdict_and_its_doubt():
    yes, no = Check(True, 0.01), Check(False, 0.02)
    assert settle(yes) == (HOLDS, 0.01)
    assert settle(no) == (FAILS, 0.02)
    assert settle(yes, "x", no) == (HOLDS, 0.01)
    assert settle(no, "x", yes) == (holds_if("x"), pytest.approx(0.03))
    assert settle(no, "x", no) == (FAILS, pytest.approx(0.04))


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.floats(-2, 2))
def test_doubt_is_how_often_fresh_runs_disagree(seed, runs, bound):
    """Over true means that are all equally likely, given what was measured: the predictive t distribution."""
    rng = np.random.default_rng(seed)
    measured = rng.normal(size=runs)
    spread = measured.std(ddof=1) * np.sqrt((runs - 1) / rng.chisquare(runs - 1, size=20_000))
    mean = measured.mean() + spread * rng.normal(size=20_000) / np.sqrt(runs)
    fresh = mean + spread * rng.normal(size=20_000) / np.sqrt(runs)
    check = above(measured, bound)
    assert ((fresh > bound) != check.holds).mean() == pytest.approx(check.doubt, abs=0.02)


def test_what_is_told():
    assert told(VALUES) == "2.500 ± 0.645"
    assert numbers_of({"x": VALUES}) == {"x": 2.5, "x, standard error": pytest.approx(0.6454972)}
