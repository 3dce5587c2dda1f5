"""Numbers of claims against those stored before: by their errors, and by rounding without one."""

import json
from dataclasses import replace

import pytest

from toybandit.claims import CLAIMS, Record, stored_numbers
from toybandit.claims.registry import HOLDS, Effort

TINY = Effort(instances=3, runs=3, states=4, rollouts=4)
ERROR = stored_numbers.ERROR


@pytest.fixture(scope="module")
def record() -> Record:
    return replace(CLAIMS["thm1-centred"](TINY), name="mine", verdict=HOLDS)


def moved(record, now, before):
    return list(stored_numbers.moved(replace(record, numbers=now), {"mine": before}))


def test_a_number_moves_by_more_than_the_error_of_the_difference(record):
    """Errors of .03 and .04 allow a difference of .05."""
    before = {"H": 1.0, f"H{ERROR}": 0.03}
    assert moved(record, {"H": 1.049, f"H{ERROR}": 0.04}, before) == []
    assert moved(record, {"H": 0.949, f"H{ERROR}": 0.04}, before) == [
        "mine: the number 'H' has moved from the stored 1 to 0.949"
    ]


@pytest.mark.parametrize(("now", "is_same"), [(2.019, True), (2.021, False), (1.979, False), (float("nan"), False)])
def test_a_number_without_an_error_may_be_rounded(record, now, is_same):
    assert (moved(record, {"slope": now}, {"slope": 2.0}) == []) is is_same


def test_rounding_is_no_number(record):
    assert moved(record, {"error": 3e-16}, {"error": 1e-13}) == []
    nan = float("nan")
    assert moved(record, {"error": nan}, {"error": nan}) == []


def test_numbers_that_come_and_go(record):
    assert moved(record, {"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 3.0}) == [
        "mine: the number 'c' is no longer measured; stored 3",
        "mine: the number 'b' is not stored; now 2",
    ]
    assert list(stored_numbers.moved(record, {"another": {"a": 1.0}})) == []


def test_quick_numbers_are_kept_and_replaced(record, tmp_path):
    assert stored_numbers.read(True, tmp_path) == {}
    other = replace(record, name="other", numbers={"b": 2.0})
    stored_numbers.write_quick([replace(record, numbers={"a": 1.0}), other], tmp_path)
    stored_numbers.write_quick([replace(record, numbers={"a": 1.5})], tmp_path)
    assert stored_numbers.read(True, tmp_path) == {"mine": {"a": 1.5}, "other": {"b": 2.0}}
    assert (tmp_path / stored_numbers.QUICK).read_text().count("\n") == 4


def test_numbers_of_the_full_page(tmp_path):
    (tmp_path / stored_numbers.FULL).write_text(json.dumps([{"name": "mine", "numbers": {"a": 1.0}, "verdict": HOLDS}]))
    assert stored_numbers.read(False, tmp_path) == {"mine": {"a": 1.0}}


def test_the_repository_stores_numbers_of_its_claims():
    assert len(set(stored_numbers.read(False)) & set(CLAIMS)) > 50
