"""Tasks with questions from files and generated ones, skipped questions, and verifiers."""

import json
from dataclasses import replace

import pytest

from llmtrain.data import Question
from llmtrain.settings.config import DataConfig, SFTConfig, TaskConfig, TrainConfig
from llmtrain.tasks import get_task
from llmtrain.verifiers import Verdict, Verifier, countdown

SUMS = [
    {"question": f"What is {a}+1?", "answer": f"{a}+1 is <<{a}+1={a + 1}>>{a + 1}.\n#### {a + 1}"} for a in range(9)
]


@pytest.fixture
def sums(tmp_path):
    file = tmp_path / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in SUMS))
    (tmp_path / "bare.jsonl").write_text('{"prompt": "1+1?", "ground_truth": "2"}\n')
    return file


def task_of(*files, **settings):
    names = tuple(map(str, files))
    return get_task(TrainConfig(data=DataConfig(train_files=names, val_files=names[:1], **settings)))


@pytest.mark.slow
def test_questions_from_a_file(sums):
    task = task_of(sums)
    assert [question.ground_truth for question in task.train[0]] == [str(a + 1) for a in range(9)]
    assert task.train[0] == list(task.test)
    first = task.test[0]
    verdicts = task.verify([first, first, task.test[3]], ["so \\boxed{1}", "\\boxed{2}", "It is 4"])
    assert [verdict.correct for verdict in verdicts] == [True, False, True]
    task.close()
    with pytest.raises(ValueError, match="closed"):
        task.verify([first], ["1"])


def test_worked_solutions_are_what_a_warm_up_learns_from(sums):
    task = task_of(sums)
    examples = task.examples(SFTConfig(examples=3))
    assert len(examples) == 3
    assert examples[1] == (({"role": "user", "content": "What is 1+1?"},), "1+1 is 2.\n#### 2")


def test_a_tokenizer_that_is_built_encodes_everything(sums):
    tokenizer = task_of(sums).build_tokenizer(270)
    for text in ("What is 1+1?", "naïve ∑ \\frac{1}{2}\n\t😀 <|im_end|> a  b"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert len(tokenizer) <= 270


def test_bad_rows_are_told_and_skipped_when_asked(sums):
    with sums.open("a") as file:
        file.write('{"question": "no answer"}\n')
    with pytest.raises(ValueError, match=r"sums.jsonl, line 10"):
        task_of(sums)
    told = task_of(sums, skip_bad=True).skipped
    assert len(told) == 2  # of training and of evaluation
    assert told[0].startswith("skipped 1 bad rows of ")
    assert "line 10" in told[0]


def test_files_of_one_name_are_two_sources_and_one_file_is_not_two(sums, tmp_path):
    other = tmp_path / "other" / "sums.jsonl"
    other.parent.mkdir()
    other.write_text(sums.read_text())
    task = get_task(TrainConfig(data=DataConfig(train_files=(str(sums),), val_files=(str(sums), str(other)))))
    assert {question.source for question in task.test} == {f"{tmp_path.name}/sums", "other/sums"}
    assert {question.source for question in task.train[0]} == {"sums"}


def test_files_are_mixed_by_weight(sums, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text("".join(f'{{"prompt": "p{i}", "ground_truth": "{i}"}}\n' for i in range(3)))
    even = task_of(sums, other, weights=(1.0, 1.0))
    drawn = [question.source for step in range(6) for question in even.train_batch(step, 4, seed=3)]
    assert drawn.count("other") == drawn.count("sums") == 12
    plain = task_of(sums, other)
    once = [question.where for step in range(3) for question in plain.train_batch(step, 4, seed=3)]
    assert len(set(once)) == 12
    assert [plain.epoch(step, 4) for step in (0, 2, 3)] == [1, 1, 2]
    assert once != [question.where for step in range(3, 6) for question in plain.train_batch(step, 4, seed=3)]
    assert once == [
        question.where for step in range(3) for question in task_of(sums, other).train_batch(step, 4, seed=3)
    ]


def test_what_does_not_fit_is_counted(sums):
    task = task_of(sums).keep(lambda questions: [q for q in questions if "3" not in q.text], "they have a 3")
    assert len(task.train[0]) == len(task.test) == 8
    assert ["1 of 9 " in said and "they have a 3" in said for said in task.skipped] == [True, True]


def test_a_refusal_names_the_file_or_the_setting(sums):
    for names, call in {
        r"bare\.jsonl .*model\.path.* sft\.steps": lambda: task_of(sums.with_name("bare.jsonl")).examples(SFTConfig()),
        r"model\.vocab_size .*260; got 100": lambda: task_of(sums).build_tokenizer(100),
        r"sums\.jsonl is given twice": lambda: task_of(sums, sums),
        "9 of 9 .*: all": lambda: task_of(sums).keep(lambda questions: [], "all"),
    }.items():
        with pytest.raises(ValueError, match=names):
            call()


def test_countdown_is_a_task_of_questions():
    task = get_task(TrainConfig(task=TaskConfig(train_problems=20, test_problems=5)))
    train, test = countdown.split(20, 5, 0)
    assert [question.prompt for question in task.train[0]] == [countdown.prompt(problem) for problem in train]
    right, wrong = task.verify([task.test[0]] * 2, [countdown.solve(test[0], __import__("random").Random(0)), "1"])
    assert right.correct
    assert not wrong.correct
    assert len(task.build_tokenizer(0)) == len(countdown.ALPHABET) + 2


@pytest.mark.slow
def test_the_wide_countdown_has_problems_for_long_runs_that_do_not_repeat():
    task = get_task(TrainConfig(task=TaskConfig(name="countdown-wide", train_problems=16384, test_problems=512)))
    keys = {(tuple(sorted(q.ground_truth["numbers"])), q.ground_truth["target"]) for q in (*task.train[0], *task.test)}
    assert len(keys) == 16384 + 512
    largest = [max(max(numbers), target) for numbers, target in keys]
    assert 200 < max(largest) <= 250
    with pytest.raises(ValueError, match=r"4756 of 10000 .* task\.name countdown-wide"):
        get_task(TrainConfig(task=TaskConfig(train_problems=9488, test_problems=512)))


def test_a_verifier_starts_when_it_is_asked_for():
    started = []

    class Silent(Verifier):
        def judge(self, responses, ground_truths):
            return [Verdict(False, "silent")] * len(responses)

    def start():
        started.append(1)
        return Silent()

    task = replace(get_task(TrainConfig()), start_verifier=start)
    task.close()
    assert not started
    task.verify([Question("a", "b")], ["c"])
    task.verify([Question("a", "b")], ["c"])
    assert started == [1]
