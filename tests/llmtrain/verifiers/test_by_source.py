"""Verifiers by the source of a question."""

import json

import pytest

from llmtrain.commands.score import main as score
from llmtrain.data import Question, read
from llmtrain.settings.config import DataConfig, TrainConfig
from llmtrain.tasks import get_task
from llmtrain.training.check import check_task
from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.by_source import Named
from llmtrain.verifiers.math.truths import usable

COUNT = {"numbers": [3, 5], "target": 8}


def test_each_response_goes_to_the_verifier_of_its_source():
    with get_verifier("exact sums=countdown") as verify:
        verdicts = verify(["3+5", "3+5", "8"], ["3+5", COUNT, "3+5"], ["words", "sums", "other"])
        assert [verdict.correct for verdict in verdicts] == [True, True, False]
        assert [verdict.reason for verdict in verdicts] == ["equal", "correct", "not equal"]
        assert verify([], [], []) == []


def test_failures_of_all_are_counted():
    with get_verifier("exact risky=checks:check", workers=1) as verify:
        verdicts = verify(["a", "exit", "a"], ["a"] * 3, ["words", "risky", "risky"])
        assert [verdict.correct for verdict in verdicts] == [True, False, True]
        assert verify.failures == {"crash": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        *((text, f"'{text}' names no verifier") for text in ("", "sums=countdown", "math sums", "math =python")),
        ("math sums=", "names no verifier"),
        ("math sums=moth", "'moth'; .*math"),
    ],
)
def test_what_is_no_verifier(text, names):
    with pytest.raises(ValueError, match=names):
        get_verifier(text)


def test_without_sources_it_cannot_judge():
    with get_verifier("exact sums=countdown") as verify, pytest.raises(ValueError, match="need the source"):
        verify(["1"], ["1"])


def test_names():
    named = Named.of("math apps=python taco=python")
    assert named.names == ["math", "python"]
    assert [named.of_source(source) for source in ("apps", "numina")] == ["python", "math"]


def test_a_row_is_bad_if_the_verifier_of_its_source_cannot_use_it(jsonl):
    rows = [{"question": "1+1?", "answer": "2", "data_source": source} for source in ("numina", "sums")]
    with pytest.raises(ValueError, match=r"line 2: .*countdown"):
        read(jsonl(rows), usable=usable("math sums=countdown"))


@pytest.mark.parametrize("truth", [COUNT, json.dumps({"inputs": [""], "outputs": ["3"]})])
def test_a_row_of_another_kind_is_no_wrong_answer_of_mathematics(jsonl, truth):
    """The tests of a program are JSON text in Eurus-2-RL, which no answer equals."""
    path = jsonl([{"question": "1+1?", "answer": "2"}, {"question": "print 3", "answer": truth}])
    with pytest.raises(ValueError, match=r"line 2: .* as in 'math livecodebench=python'"):
        read(path, usable=usable("math"))
    sets = jsonl([{"question": "solve", "answer": "{1, 2}"}], "sets.jsonl")
    assert len(read(sets, usable=usable("math")).questions) == 1


def test_a_task_with_rows_and_files_of_several_kinds(jsonl):
    """A mixed file to train on by its column, benchmarks by their files' names."""
    mixed = [
        {"question": "a?", "answer": "yes", "data_source": "words"},
        {"question": "reach 8", "answer": COUNT, "data_source": "sums"},
    ]
    held = jsonl([{"question": "reach 8 too", "answer": COUNT}], "counting.jsonl")
    data = DataConfig(
        train_files=(jsonl(mixed, "mixed.jsonl"),),
        val_files=(held,),
        verifier="exact sums=countdown counting=countdown",
    )
    check_task(TrainConfig(data=data))
    task = get_task(TrainConfig(data=data))
    questions = [*task.train[0], *task.test]
    assert [question.source for question in questions] == ["words", "sums", "counting"]
    assert [verdict.correct for verdict in task.verify(questions, ["yes", "3+5", "5+3"])] == [True, True, True]
    assert [verdict.correct for verdict in task.verify(questions, ["no", "3", "5"])] == [False, False, False]
    task.close()


def test_a_column_of_ones_own_chooses(jsonl):
    rows = [
        {"question": "a?", "answer": "yes", "kind": "words"},
        {"question": "reach 8", "answer": COUNT, "kind": "count"},
    ]
    data = DataConfig(train_files=(jsonl(rows),), source_key="kind", verifier="exact count=countdown")
    task = get_task(TrainConfig(data=data))
    assert [verdict.correct for verdict in task.verify(task.train[0], ["yes", "3+5"])] == [True, True]
    task.close()


def test_lines_of_a_file_are_judged_by_their_source(tmp_path, capsys):
    lines = [
        {"response": "3+5", "ground_truth": COUNT, "data_source": "sums"},
        {"response": "3+5", "ground_truth": "3+5"},
        {"response": "8", "ground_truth": "3+5", "data_source": "words"},
    ]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert score(["--verifier", "exact sums=countdown", "--in", str(source), "--out", str(out)]) == 0
    assert [json.loads(line)["correct"] for line in out.read_text().splitlines()] == [True, True, False]


def test_ifeval_rows_have_their_source_whatever_their_file(parquet):
    row = {"prompt": "Say.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"n": None}]}
    (question,) = read(parquet([row], "ifeval_input_data.parquet")).questions
    assert question.source == "ifeval"
    assert isinstance(question, Question)
