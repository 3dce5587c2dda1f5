"""Equality of outputs, decided by what the expected one shows."""

import pytest

from llmtrain.verifiers.same_output import same_text, same_value


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ("0.3333333333", "0.333333", True),
        ("0.33333", "0.333333333333", False),
        ("1234567.8", "1234567.0", True),
        ("1234569.0", "1234567.0", False),
        ("3", "3.0", True),
        ("3.0", "3", True),
        ("3.0000001", "3", False),
        ("1000000001", "1000000000", False),
        ("1e6", "1.0E+6", True),
        ("-0.0", "0.0", True),
        (".5", "0.5", True),
        ("7", "007", False),
        ("010", "10", True),
        ("0.5000001\nYES", "0.5 YES", True),
        ("0.5 yes", "0.5 YES", False),
        ("0.5", "0.5 0.5", False),
        ("nan", "0.5", False),
        ("inf", "1e9", False),
        ("1_000", "1000", False),
        ("１２", "12", False),
        ("1e9999", "0.5", False),
        ("1.2.3", "1.2.3", True),
    ],
)
def test_text(found, wanted, same):
    assert same_text(found, wanted) is same


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        ([0.1 + 0.2, 1], [0.3, 1], True),
        ({"a": 0.1 + 0.2}, {"a": 0.3}, True),
        (3, 3.0, True),
        (3.0000001, 3, False),
        (10**9 + 1, 10**9, False),
        ([1.0], [1.0, 2.0], False),
        ({"a": 1.0}, {"b": 1.0}, False),
        ("0.30000000000000004", "0.3", False),
        (True, 1.0, False),
        (float("inf"), 1.0, False),
        (1.0, float("inf"), False),
        (float("inf"), float("inf"), True),
        (float("nan"), 1.0, False),
        (None, 0.0, False),
    ],
)
def test_values(found, wanted, same):
    assert same_value(found, wanted) is same
