"""Warnings of what a file has and its questions lack."""

import warnings

import pytest

from llmtrain.cli import main
from llmtrain.data import read
from llmtrain.data.notes import DataWarning, about


def told(path, **settings):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read(path, **settings)
    return [str(one.message).partition(": ")[2] for one in found]


def test_columns_that_are_not_used(jsonl):
    rows = [{"question": "1?", "answer": "1", "table": "a|b", "level": "1", "image": None}]
    assert told(jsonl(rows)) == ["columns that are not used: table, image"]
    assert told(jsonl(rows), keep_columns=True) == []
    assert told(jsonl([rows[0] | {f"c{i}": 1 for i in range(9)}])) == [
        "columns that are not used: table, image, c0, c1, c2 and 6 more"
    ]


def test_texts_beside_messages_are_not_used(jsonl, verl):
    assert told(jsonl([verl("1+1?", "2") | {"context": "c"}])) == ["columns that are not used: context"]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "problem_id",
            "question_type",
            "llama8b_solve_rate",
            "is_calculation",
            "cot_content",
            "Subject",
            "dataSource",
        ),
        *("__index_level_0__", "extra_info", "reward_model", "correctness_math_verify"),
        *("Pre-Revision Question", "Canary String", "Feedback_EV_1"),
    ],
)
def test_names_of_what_a_prompt_does_not_need(name):
    assert about(name)


@pytest.mark.parametrize("name", ["table", "context", "image_path", "input", "source_text", "a", "options"])
def test_names_of_what_a_prompt_may_need(name):
    assert not about(name)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"answer": "w", "answer_index": 2}, "'answer_index' is 2 and 'answer' is 'w'; 'answer_index' is used"),
        ({"answer": "w", "label": 2}, "'answer' is 'w' and 'label' is 2; 'answer' is used"),
        ({"answer": "w", "answer_idx": "C"}, "'answer_idx' is 'C' and 'answer' is 'w'; 'answer_idx' is used"),
    ],
)
def test_columns_that_name_different_options(jsonl, row, line):
    right = {key: {"w": "y"}.get(value, value) for key, value in row.items()}
    rows = [{"question": f"{i}?", "choices": list("wxyz")} | one for i, one in enumerate([right, row, row])]
    assert told(jsonl(rows)) == [f"2 rows with columns that name different options, the first in line 2 {line}"]
    assert told(jsonl(rows[:1])) == []


def test_numbers_that_may_count_from_0_or_1(jsonl):
    row = {"question": "?", "A": "w", "B": "x", "C": "y"}
    unsure = "numbers in 'answer' are taken to count from 0: none is 0 or the number of options"
    assert told(jsonl([row | {"answer": 1}])) == [unsure]
    assert told(jsonl([row | {"answer": 1}, row | {"question": "!", "answer": 3}])) == []


def test_the_command_tells_it_in_lines(jsonl):
    path = jsonl([{"question": "1?", "answer": "1", "table": "a|b"}])
    with pytest.warns(DataWarning) as found:
        assert main(["data", path]) == 0
    (one,) = found
    line = warnings.formatwarning(one.message, one.category, one.filename, one.lineno)
    assert line == "warning: questions.jsonl: columns that are not used: table\n"


@pytest.mark.parametrize(
    ("row", "first"),
    [
        ({"choices": list("wxyz"), "answer": 1}, 0),
        ({"choices": list("wxyz"), "answer": 2}, 0),
        ({"sol1": "w", "sol2": "x", "label": 1}, 0),
        ({"option1": "w", "option2": "x", "answer": "1"}, 1),
        ({"answerA": "w", "answerB": "x", "answerC": "y", "label": "1"}, 1),
    ],
)
def test_numbers_of_any_options_may_count_from_0_or_1(jsonl, row, first):
    rows = [row | {"question": f"{i}?"} for i in range(3)]
    (column,) = {"answer", "label"} & {*row}
    said = f"numbers in {column!r} are taken to count from {first}: none is 0 or the number of options"
    assert told(jsonl(rows)) == [said]
    shown = 0 if first == 0 else 3 if "answerA" in row else 2
    assert told(jsonl([*rows, rows[0] | {"question": "!", column: type(row[column])(shown)}])) == []


def test_numbers_that_are_sure_or_not_used_are_not_told(jsonl):
    options = {"question": "?", "choices": list("wxyz")}
    assert told(jsonl([options | {"answer_index": 1}])) == []
    assert told(jsonl([options | {"answer": "B", "label": 1}])) == []
    assert told(jsonl([options | {"answer": "x"}])) == []


def test_objects_for_ground_truths(jsonl):
    target = [{"prompt": "?", "reward_model": {"ground_truth": {"target": ["a", "b"]}}}]
    (said,) = told(jsonl(target))
    assert said.startswith(
        "1 row with an object for the ground truth, the first {'target': ['a', 'b']} in line 1, which"
    )
    assert told(jsonl([{"prompt": "?", "ground_truth": {"inputs": ["1"], "outputs": ["2"]}}])) == []
    assert told(jsonl([{"prompt": "?", "ground_truth": {"numbers": [3, 5], "target": 8}}])) == []
    aliases = [{"question": "?", "answer": {"value": "a", "aliases": ["b"]}}]
    assert told(jsonl(aliases)) == [
        "other forms of the answer in 'answer.aliases' are not read: only 'answer.value' is right"
    ]
