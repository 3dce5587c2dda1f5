"""Numbers with a base."""

import pytest

from llmtrain.verifiers.math.based_number import Based, based, same_based


def test_reading():
    assert based("2516_8") == based("2516_{8}") == based("(2516)_{\\text{eight}}") == Based("2516", 8)
    assert Based("2516", 8).value == 1358
    assert based("1F_{16}") == Based("1f", 16)
    assert based("-11_2") == Based("-11", 2)
    assert Based("902", 7).value is None
    assert [based(text) for text in ("x_2", "12", "12_1", "12_{99}")] == [None] * 4


@pytest.mark.parametrize(
    ("given", "wanted", "question", "same"),
    [
        ("2516_8", "2516_{8}", "", True),
        ("2516", "2516_8", "", True),
        ("1358", "2516_8", "", False),
        ("2516_7", "2516_8", "", False),
        ("1358_{10}", "2516_8", "", True),
        ("1358_{10}", "2516_8", "Write it in base 8.", False),
        ("1111_2", "15", "", True),
        ("1111_2", "15", "Write $1111_2$ in base ten.", False),
        ("15_7", "15", "", False),
        ("15_7", "15", "What is twelve in base 7?", True),
        ("15_7", "15", "What is twelve?", False),
        ("101_2", "101", "Write 5 in binary.", True),
        ("902_7", "902", "in base 7", False),
        ("15", "15", "", None),
        ("x_2", "x_2", "", None),
    ],
)
def test_bases_are_what_they_mean(given, wanted, question, same):
    assert same_based(given, wanted, question) is same
