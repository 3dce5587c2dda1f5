"""Rows to keep by the values of their columns."""

import pytest

from llmtrain.commands.data import main as show
from llmtrain.data import read
from llmtrain.data.row_filter import RowFilter
from llmtrain.settings.config import DataConfig, TrainConfig
from llmtrain.tasks import get_task

ROWS = [
    {"question": "1+1?", "answer": "2", "ability": "math", "about": {"level": 1}},
    {"question": "2+2?", "answer": "4", "ability": "math", "about": {"level": 2}},
    {"question": "add", "answer": "assert add(1, 2) == 3", "ability": "code", "about": {"level": 2}},
    {"question": "", "answer": "", "ability": "talk", "about": {"level": 3}},
]


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (["ability=math"], ["1+1?", "2+2?"]),
        (["ability=math", "ability=code"], ["1+1?", "2+2?", "add"]),
        (["ability=math", "about.level=2"], ["2+2?"]),
        (["ability=math", "style=instruct"], ["1+1?", "2+2?"]),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_rows_with_the_values_are_kept_and_others_not_looked_at(request, form, conditions, kept):
    """The last row is bad, but no filter keeps it."""
    keep = RowFilter(conditions)
    found = read(request.getfixturevalue(form)(ROWS), keep=keep)
    assert [question.text for question in found.questions] == kept
    assert found.skipped == []
    assert keep.dropped == len(ROWS) - len(kept)


def test_files_of_several_forms_are_filtered_together(jsonl):
    other = jsonl([{"question": "3+3?", "answer": "6"}], "plain.jsonl")
    files = (jsonl(ROWS, "mixed.jsonl"), other)
    task = get_task(TrainConfig(data=DataConfig(train_files=files, val_files=(other,), keep=("ability=math",))))
    assert [[question.text for question in source] for source in task.train] == [["1+1?", "2+2?"], ["3+3?"]]
    assert task.skipped == (f"left out 2 rows of {files[0]}: data.keep is ability=math",)


def test_questions_to_evaluate_on_are_not_filtered(jsonl):
    """Benchmarks in verl's form have the column too, with other words: MATH for math."""
    held = jsonl([{"question": "3+3?", "answer": "6", "ability": "MATH"}], "held.jsonl")
    data = DataConfig(train_files=(jsonl(ROWS, "mixed.jsonl"),), val_files=(held,), keep=("ability=math",))
    assert [question.text for question in get_task(TrainConfig(data=data)).test] == ["3+3?"]


@pytest.mark.parametrize(
    ("rows", "keep", "names"),
    [
        (ROWS, "ability=maths", "questions.jsonl .*ability=maths: 'ability' has code, math, talk$"),
        (ROWS[:3], "abilty=math", "'abilty'"),
        *((["not read"], condition, "COLUMN=VALUE") for condition in ("math", "ability=", "=math")),
    ],
)
def test_a_condition_that_keeps_nothing_is_named(jsonl, rows, keep, names):
    with pytest.raises(ValueError, match=names):
        get_task(TrainConfig(data=DataConfig(train_files=(jsonl(rows),), keep=(keep,))))


def test_commands_that_read_files_filter_too(jsonl, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert show([jsonl(ROWS, "mixed.jsonl"), "--keep", "ability=math"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "mixed.jsonl" in line]
    assert line.split()[1:3] == ["2", "2"]  # rows, questions
