"""Lists that go on."""

import pytest

from llmtrain.verifiers.math.math_equal import same_sequence


@pytest.mark.parametrize(
    ("given", "wanted", "same"),
    [
        ("1,2,3,\\ldots,n", "1,2,\\ldots,n", True),
        ("1, 2, 3, \\dots", "1,2,3,...", True),
        ("\\{1,2,3\\}", "\\{1,2,3,\\ldots\\}", False),
        ("\\{1,2,\\ldots\\}", "\\{1,2\\}", False),
        ("1:8:27:\\ldots", "1:2:3:\\ldots", False),
        ("1,2,\\ldots,n", "1,2,\\ldots,m", False),
        ("1+2+\\ldots", "1,2,\\ldots", False),
        ("1,\\ldots", "1,2,3,\\ldots", False),
        ("1,2,3", "1,2", None),
    ],
)
def test_what_both_write_must_agree(given, wanted, same):
    assert same_sequence(given, wanted) is same
    assert same_sequence(wanted, given) is same
