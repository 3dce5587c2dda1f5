import re

import pytest

from llmtrain.data.columns import Columns, parse_answer, parse_prompt
from llmtrain.data.tables import Table


def table(*columns):
    return Table("t.parquet", "t", "row", columns, lambda _: iter(()))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("question", "answer"), ("question", "answer", "", "")),
        (("problem", "solution", "answer"), ("problem", "answer", "solution", "")),
        (("problem", "solution"), ("problem", "solution", "", "")),
        (("input", "target"), ("input", "target", "", "")),
        (("prompt", "question", "ground_truth", "answer"), ("prompt", "ground_truth", "", "")),
        (
            ("data_source", "prompt", "reward_model", "reward_model.ground_truth", "extra_info", "extra_info.answer"),
            ("prompt", "reward_model.ground_truth", "extra_info.answer", "data_source"),
        ),
    ],
)
def test_known_columns_are_recognised(columns, expected):
    assert Columns.of(table(*columns)) == expected


def test_columns_that_are_asked_for():
    there = table("prompt", "answer", "extra", "extra.q", "extra.a")
    assert Columns.of(there, "extra.q", "extra.a")[:2] == ("extra.q", "extra.a")
    message = "t.parquet: no column 'extra.b' (answer_key); its columns: prompt, answer, extra, extra.q, extra.a"
    with pytest.raises(ValueError, match=re.escape(message)):
        Columns.of(there, "", "extra.b")
    with pytest.raises(ValueError, match=r"no column 'x' \(prompt_key\)"):
        Columns.of(there, "x")


def test_a_table_without_a_known_column_lists_those_it_has():
    with pytest.raises(ValueError, match=r"no column of an answer \(.*\): set answer_key; its columns: prompt, a\\b$"):
        Columns.of(table("prompt", "a\\b"))
    with pytest.raises(ValueError, match=r"no column of a prompt .*: answer, x0, .*, x28, and 2 more$"):
        Columns.of(table("answer", *(f"x{i}" for i in range(31))))
    with pytest.raises(ValueError, match=r"its columns: na me, and$"):
        Columns.of(table("na\nme", "and\x1b"))


def test_a_row_that_leaves_source_and_solution_blank():
    columns = Columns("question", "answer", "solution", "data_source")
    row = {"question": "2 + 3", "answer": "5", "solution": " ", "data_source": ""}
    found = columns.question(row, "sums", "row 0")
    assert (found.source, found.solution) == ("sums", None)


@pytest.mark.parametrize("inner", [None, "ground_truth", {"style": "rule"}])
def test_a_row_that_lacks_a_field(inner):
    columns = Columns("question", "reward_model.ground_truth", "", "")
    with pytest.raises(ValueError, match=r"column 'reward_model\.ground_truth' is missing"):
        columns.question({"question": "2 + 3", "reward_model": inner}, "sums", "row 0")


GSM8K = "He has 48/2 = <<48/2=24>>24 clips.\nIn all 24+48 = <<24+48=72>>72.\n#### 72"


def test_a_worked_solution_of_gsm8k():
    assert parse_answer(GSM8K) == ("72", "He has 48/2 = 24 clips.\nIn all 24+48 = 72.\n#### 72")


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("So\n#### 1,234,567 ", "1234567"),
        ("So\n#### -12,000.50", "-12000.50"),
        ("So\n#### (1,234)", "(1,234)"),  # a pair
        ("So\n#### 1,23", "1,23"),
        ("#### 5", "5"),
        ("#### Steps\n1 + 1 is 2.\n#### 2", "2"),
    ],
)
def test_the_number_after_the_mark(text, truth):
    assert parse_answer(text)[0] == truth


@pytest.mark.parametrize("text", ["a #### 5", "#### Title\nbody", "5"])
def test_text_without_a_last_line_of_an_answer_is_the_ground_truth(text):
    assert parse_answer(text) == (text, None)


def test_a_worked_solution_of_math():
    text = r"We have $x = \boxed{\frac{1}{2}}$."
    assert parse_answer(text, "solution") == (r"\frac{1}{2}", text)
    assert parse_answer(text, "ground_truth") == (text, None)
    assert parse_answer(r"\boxed{ 5 }", "solution") == ("5", r"\boxed{ 5 }")
    for bare in ("no box", r"\boxed{ }"):
        assert parse_answer(bare, "solution") == (bare, None)


@pytest.mark.parametrize("value", [0, 0.5, False, [1, 2], {"numbers": [3, 5], "target": 8}, " 7 "])
def test_ground_truths_stay_as_they_are(value):
    assert parse_answer(value) == (value, None)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is missing"),
        (float("nan"), "is missing"),
        ("", "is empty"),
        ("  \n", "is empty"),
        ([], "is empty"),
        ({}, "is empty"),
        (b"5", "is bytes, neither text, number, list nor object"),
        ("work\n#### ", "has no answer after ####"),
        ("\ud800", "has half a character (a lone surrogate) at 0"),
    ],
)
def test_bad_answers(value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_answer(value)


def test_prompts():
    assert parse_prompt(" What? ") == " What? "
    chat = [{"content": "Be brief.", "role": "system"}, {"content": "What?", "role": "user", "name": None}]
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "What?"})
    assert parse_prompt(chat) == messages


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is missing"),
        (" ", "is empty"),
        ([], "is empty"),
        (5, "is int, neither text nor a list of messages"),
        (["hello"], "has a message 0 that is str, not role and content"),
        ([{"role": "user"}], "has a message 0 without 'content'"),
        ([{"role": "user", "content": "a"}, {"content": "b"}], "has a message 1 without 'role'"),
        ([{"role": "user", "content": [{"text": "a"}]}], "has a message 0 whose 'content' is list, not text"),
        ([{"role": "", "content": "a"}], "has a message 0 whose 'role' is empty"),
        ([{"role": "user", "content": s} for s in "a "], "is empty: its last message has no text"),
        ([{"role": "user", "content": "x\udc00"}], "has half a character (a lone surrogate) at 1"),
    ],
)
def test_bad_prompts(value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_prompt(value)
