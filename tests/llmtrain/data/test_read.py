import json
import random
import re
from pathlib import Path

import pytest

from llmtrain.data import Question, read
from llmtrain.verifiers.math.truths import usable


def test_verl_rows_that_repeat_are_one_question(parquet, verl):
    path = parquet([verl(f"{i}?", str(i)) for i in (1, 2, 1, 3, 2, 1)])
    questions, skipped = read(path)
    assert not skipped
    assert [(q.text, q.ground_truth, q.repeats, q.where) for q in questions] == [
        ("1?", "1", 3, "questions.parquet, row 1"),
        ("2?", "2", 2, "questions.parquet, row 2"),
        ("3?", "3", 1, "questions.parquet, row 4"),
    ]
    assert questions[0].prompt == ({"role": "user", "content": "1?"},)
    assert questions[0].source == "sums"


def test_gsm8k_lines(jsonl):
    path = jsonl([{"question": "2+2?", "answer": "2+2 = <<2+2=4>>4\n#### 4"}], "gsm8k_train.jsonl")
    expected = Question("2+2?", "4", "gsm8k_train", "2+2 = 4\n#### 4", 1, "gsm8k_train.jsonl, line 1")
    assert read(path).questions == [expected]


def test_the_first_of_several_worked_solutions_is_kept(jsonl):
    solutions = (None, "one way", "another")
    path = jsonl([{"problem": "x?", "answer": "4", "solution": s} for s in solutions])
    assert [(q.repeats, q.solution) for q in read(path).questions] == [(3, "one way")]


def test_the_same_prompt_in_two_sources_is_two_questions(parquet, verl):
    questions = read(parquet([verl("1?", "1", "a"), verl("1?", "2", "b")])).questions
    assert [(q.source, q.ground_truth) for q in questions] == [("a", "1"), ("b", "2")]


def test_the_same_words_as_text_and_in_another_role_are_other_questions(jsonl):
    prompts = ("1?", [{"role": "user", "content": "1?"}], [{"role": "system", "content": "1?"}])
    assert len(read(jsonl([{"prompt": p, "answer": "1"} for p in prompts])).questions) == 3


def test_contradictions_are_bad_rows(jsonl):
    rows = [{"question": q, "answer": a} for q, a in (("x", "1"), ("y", "5"), ("x", "1"), ("x", 1))]
    path = jsonl(rows)
    with pytest.raises(ValueError, match=r"line 1: contradicts .*line 4: .* '1' here, 1 there; --skip-bad"):
        read(path)
    questions, skipped = read(path, skip_bad=True)
    assert [q.text for q in questions] == ["y"]
    assert [line.partition(":")[0] for line in skipped] == [f"questions.jsonl, line {i}" for i in (1, 3, 4)]
    assert "line 4: contradicts questions.jsonl, line 1:" in skipped[2]


GOOD = {"question": "1+1?", "answer": "2"}
BAD = [
    ('{"question": "a"', "not JSON: Expecting ',' delimiter"),
    ("[1, 2]", "expected an object, got list"),
    ({"answer": "1"}, "column 'question' is missing"),
    ({"question": "", "answer": "1"}, "column 'question' is empty"),
    ({"question": "a"}, "column 'answer' is missing"),
    ({"question": "a", "answer": " "}, "column 'answer' is empty"),
    ({"question": [{"role": "user"}], "answer": "1"}, "column 'question' has a message 0 without 'content'"),
    ('{"question": "bell \x07", "answer": "1"}', "not JSON: Invalid control character"),
    (b'{"question": "\xff\xfe", "answer": "1"}', "not JSON: 'utf-8' codec can't decode"),
    ('{"question": "\\ud800", "answer": "1"}', "column 'question' has half a character"),
    ("[" * 100_000, "not JSON: maximum recursion depth exceeded"),
    ("x" * 2_000_000, "not JSON: Expecting value"),
    (b"\x00\x01\x02", "not JSON"),
]


@pytest.mark.parametrize(("row", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_line_is_named(jsonl, row, message):
    path = jsonl([GOOD, row])
    with pytest.raises(ValueError, match="^" + re.escape(f"questions.jsonl, line 2: {message}")) as caught:
        read(path)
    assert str(caught.value).endswith("; --skip-bad (in training --data.skip-bad) skips such rows")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
    questions, skipped = read(path, skip_bad=True)
    assert len(questions) == 1
    assert len(skipped) == 1
    assert skipped[0].startswith(f"questions.jsonl, line 2: {message}")


@pytest.mark.parametrize(
    ("verifier", "truth", "names"),
    [
        ("math", [{"a": 1}], "dict"),
        ("exact", ["a"], "text or a number"),
        ("python", 3, "tests"),
        ("regex", "(", "pattern"),
        ("countdown", "8", ""),
    ],
)
def test_a_ground_truth_that_the_verifier_cannot_use_is_a_bad_row(jsonl, verifier, truth, names):
    path = jsonl([{"question": "why?", "answer": truth}, GOOD])
    with pytest.raises(ValueError, match=f"line 1: .* {verifier} .*{names}"):
        read(path, usable=usable(verifier))
    if verifier == "math":
        questions, skipped = read(path, usable=usable(verifier), skip_bad=True)
        assert (len(questions), len(skipped)) == (1, 1)


def test_bad_rows_of_parquet_are_named(parquet, verl):
    path = parquet([verl("1?", "1"), verl("2?", None), verl("", "3"), {**verl("4?", "4"), "prompt": None}])
    questions, skipped = read(path, skip_bad=True)
    assert len(questions) == 1
    columns = ("reward_model.ground_truth", "prompt", "prompt")
    for row, (said, column) in enumerate(zip(skipped, columns, strict=True), 2):
        assert said.startswith(f"questions.parquet, row {row}: column '{column}' ")


@pytest.mark.parametrize(
    ("rows", "settings", "names"),
    [
        ([{"question": "x", "answer": answer} for answer in (1, True)], {}, "1 here, True there"),
        ([{"question": "", "answer": "1"}], {"skip_bad": True}, r"no good row: questions\.jsonl, line 1: .*'question'"),
        ([GOOD], {"prompt_key": "a.b", "skip_bad": True}, r"'a\.b' .*: question, answer$"),
        ([GOOD], {"source_key": "grade"}, r"'grade' \(source_key\).*: question, answer$"),
    ],
)
def test_a_refusal_names_what_is_wrong_with_the_file(jsonl, rows, settings, names):
    with pytest.raises(ValueError, match=names):
        read(jsonl(rows), **settings)


def test_dotted_columns(jsonl, parquet):
    rows = [{"x": {"q": "1?", "deep": {"a": {"target": 8}}}, "dotted.name": "2?"}]
    for path in (jsonl(rows), parquet(rows)):
        (question,) = read(path, prompt_key="x.q", answer_key="x.deep.a").questions
        assert (question.prompt, question.ground_truth) == ("1?", {"target": 8})
        (question,) = read(path, prompt_key="dotted.name", answer_key="x.deep.a.target").questions
        assert (question.prompt, question.ground_truth) == ("2?", 8)


def test_turns_of_a_dialogue(jsonl, parquet):
    """As Open-Reasoner-Zero publishes them: lists of turns on GitHub, columns 0 and 1 on the hub."""
    turns = [{"from": "human", "value": "1+1?"}, {"from": "assistant", "ground_truth": {"value": "2"}}]
    file = jsonl([turns], "orz.jsonl")
    array = Path(file).with_name("orz.json")
    array.write_text(json.dumps([turns]))
    for path in (file, str(array), parquet([{str(i): turn for i, turn in enumerate(turns)}], "hub.parquet")):
        (question,) = read(path).questions
        assert (question.prompt, question.ground_truth) == ("1+1?", "2")


def test_sources_by_a_column_of_ones_own(jsonl):
    """As MATH's levels: `Level 5`, or a number, in the row or deeper; a row without one has the name of the file."""
    rows = [{"level": "Level 5", "extra": {"n": 3}}, {"level": "Level 1", "extra": {"n": 2}}, {"extra": None}]
    path = jsonl([{"problem": f"{i}?", "answer": "1"} | row for i, row in enumerate(rows)], "math.jsonl")
    assert [q.source for q in read(path, source_key="level").questions] == ["Level 5", "Level 1", "math"]
    assert [q.source for q in read(path, source_key="extra.n").questions] == ["3", "2", "math"]


def test_a_folder_is_read_as_one(parquet, tmp_path):
    for i in range(2):
        parquet([{"question": q, "answer": "1"} for q in ("same?", f"{i}?")], f"sums/train-{i}-of-2.parquet")
    questions = read(str(tmp_path / "sums")).questions
    assert [(q.text, q.repeats, q.source) for q in questions] == [
        ("same?", 2, "sums"),
        ("0?", 1, "sums"),
        ("1?", 1, "sums"),
    ]


def damaged(good: bytes, seed: int) -> bytes:
    """Return the file truncated, partly overwritten, or replaced by noise."""
    chance = random.Random(seed)
    data = bytearray(good)
    kind = seed % 4
    if kind == 0:
        return bytes(data[: chance.randrange(len(data))])
    if kind == 1:
        return chance.randbytes(chance.randrange(1, 2000))
    for _ in range(chance.randint(1, 20)):
        low = 0 if kind == 2 else len(data) * 2 // 3  # all of it, or the description at the end
        data[chance.randrange(low, len(data))] = chance.randrange(256)
    return bytes(data)


def attempt(path, skip_bad=True):
    """Return the questions, or the error, which must be one line that names the file."""
    try:
        return read(str(path), skip_bad=skip_bad), None
    except ValueError as error:
        said = str(error)
    assert path.name in said
    assert said.isprintable()
    assert len(said) < 2500
    return None, said


def test_damaged_parquet_gives_one_line_or_questions(parquet, verl, tmp_path):
    good = (tmp_path / parquet([verl(f"{i}? é", str(i)) for i in range(200)])).read_bytes()
    path = tmp_path / "damaged.parquet"
    outcomes = []
    for seed in range(300):
        path.write_bytes(damaged(good, seed))
        outcomes += [attempt(path, skip_bad) for skip_bad in (False, True)]
    assert all(found.questions for found, _ in outcomes if found)
    assert sum(error is not None for _, error in outcomes) > 400


def test_damaged_jsonl_gives_one_line_or_questions(tmp_path):
    good = "".join(json.dumps({"question": f"{i}? é", "answer": str(i)}, ensure_ascii=False) + "\n" for i in range(50))
    path = tmp_path / "damaged.jsonl"
    outcomes = []
    for seed in range(100):
        path.write_bytes(damaged(good.encode(), seed))
        outcomes.append(attempt(path))
    assert any(found.skipped for found, _ in outcomes if found)
