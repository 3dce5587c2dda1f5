"""Units beside an answer."""

import pytest

from llmtrain.verifiers.math.unit_beside import with_unit


@pytest.mark.parametrize(
    ("answer", "before", "after", "read"),
    [
        ("5", "", " km.", "5\\text{ km}"),
        ("5", "", "$ km.", "5\\text{ km}"),
        ("5", "", " \\text{ km}^2", "5\\text{ km}^2"),
        ("5", "It costs \\$", ".", "\\$5"),
        ("5", "", "%", "5%"),
        ("5", "", " in total", "5"),
        ("5", "", " in.", "5\\text{ in}"),
        ("5", "", " m is the length", "5"),  # a letter of a sentence, not at its end
        ("5", "", " apples", "5"),
        ("x", "", " km", "x"),
    ],
)
def test_known_units_come_with_the_number(answer, before, after, read):
    assert with_unit(answer, before, after) == read
