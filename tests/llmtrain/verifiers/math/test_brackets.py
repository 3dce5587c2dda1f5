"""Brackets: where they close, and what they leave outside."""

import pytest

from llmtrain.verifiers.math.brackets import closed_part, closing_brace, split


def test_a_brace_closes():
    assert closing_brace("{a{b}\\}c}d", 0, 10) == 8
    assert closing_brace("{a{b}", 0, 5) is None


def test_split_leaves_brackets_whole():
    assert split("(1,2),[3,4);5", ",;") == ["(1,2)", "[3,4)", "5"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [("5", "5"), ("(5)", "(5)"), ("5) and", "5"), ("1) 5", " 5"), ("[0, 5)", "[0, 5)"), ("(5", "5"), ("5 (", "5 ")],
)
def test_closed_part(text, kept):
    assert closed_part(text, text.index("5")) == kept
