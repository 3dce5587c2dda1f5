"""Times and ratios: equal, and what is neither."""

import pytest

from llmtrain.verifiers.math.colons import pairs, same_colon


@pytest.mark.parametrize(
    ("given", "wanted", "same"),
    [
        ("10:30", "10:30", True),
        ("t = 10:30", "10:30", True),
        ("21:63", "10:30", False),
        ("5", "10:30", False),
        ("10:30 AM", "10:30", False),
        ("10:30", "10:30 AM", True),
        ("3:00 p.m.", "15:00", True),
        ("12 AM", "0:00", True),
        ("12:30", "12:30 PM", True),
        ("12:30", "12:30 AM", False),
        ("3 o'clock", "3:00", True),
        ("2:30:00", "2:30", True),
        ("13 PM", "1 PM", False),
        ("6:4", "3:2", True),
        ("6 to 4", "3:2", True),
        ("a:b = 6:4", "3:2", True),
        ("4:6", "3:2", False),
        ("1.5:1", "3:2", True),
        ("3:2", "\\frac{3}{2}", True),
        ("6:4", "\\frac{3}{2}", False),
        ("3:2", "1.5", False),
        ("5:1", "5", False),
        ("2:4:6", "1:2:3", True),
        ("1:6", "1:2:3", False),
        ("1/6", "1:2:3", False),
        ("3/2", "3:2", None),
        ("5", "5", None),
        ("\\pi:2", "\\pi:2", None),
        ("5:0", "5", None),
    ],
)
def test_times_and_ratios(given, wanted, same):
    assert same_colon(given, wanted) is same


def test_a_question_tells_times_from_ratios():
    assert same_colon("14:30", "7:15")
    assert same_colon("14:30", "7:15", "What is the ratio of minutes?")
    assert not same_colon("14:30", "7:15", "When, in hours and minutes?")
    assert not same_colon("14:30", "7:15", "Simplify 14:30.")


def test_ratios_of_more_terms_are_pairs():
    assert pairs("a:b:c", "x:y:z") == [("a:b", "x:y"), ("a:c", "x:z")]
    assert pairs("a:b", "x:y") is None
    assert pairs("a:b", "x:y:z") == [("0", "1")]
