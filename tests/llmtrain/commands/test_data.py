import re

import pytest

from llmtrain.cli import main
from llmtrain.commands.data import main as show
from llmtrain.commands.subset import main as subset
from llmtrain.data import read
from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.tokenizer import build_char_tokenizer


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Set a terminal width at which the table does not wrap."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the folder of a model without a chat template."""
    tokenizer = build_char_tokenizer("ab")
    path = tmp_path_factory.mktemp("models") / "tiny"
    save(build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=32), tokenizer, path)
    return str(path)


@pytest.fixture
def mixed(parquet, verl):
    """Write twelve questions of the letter a, three times each, and three of the letter b.

    Repeated letters have the same states with any weights, so K-means separates the two.
    """
    rows = [verl("a" * n, str(n), "a") for n in range(1, 13)]
    return parquet(rows * 3 + [verl("b" * n, str(n), "b") for n in range(1, 4)], "mixed.parquet")


def test_show(mixed, jsonl, capsys):
    other = jsonl([{"question": "1+1?", "answer": "2"}, {"question": "", "answer": "2"}], "other.jsonl")
    with pytest.raises(ValueError, match="line 2: column 'question' is empty; --skip-bad"):
        show([mixed, other])
    assert show([mixed, other, "--skip-bad"]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert re.search(r"39 +15 +1 to 3 +0 +5, 12 +chat", lines["mixed.parquet"])
    assert re.search(r"2 +1 +1 +1 +4, 4 +text +other", lines["other.jsonl"])
    assert "skipped: other.jsonl, line 2: column 'question' is empty" in said


def test_of_many_sources_and_bad_rows_some_are_shown(parquet, verl, jsonl, capsys):
    many = parquet([verl("1+1?", "2", source) for source in "abcde"])
    bad = jsonl([{"question": "1+1?", "answer": "2"}, *[{"question": "2+2?"}] * 7])
    assert show([many, bad, "--skip-bad"]) == 0
    said = capsys.readouterr().out
    assert "chat a, b, c and 2 more" in " ".join(said.split())
    assert [line.partition(",")[0] for line in said.splitlines() if "skipped:" in line] == [
        *["skipped: questions.jsonl"] * 5,
        f"skipped: 2 more of {bad}",
    ]


def test_the_first_question_in_full(mixed, jsonl, capsys):
    solved = jsonl([{"question": "1+[b]1?", "answer": "1+1\n#### 2"}])
    assert show([mixed, solved, "--first"]) == 0
    said = capsys.readouterr().out
    assert "mixed.parquet, row 1" in said
    assert "[user]\na\n" in said
    assert "1+[b]1?" in said
    assert "ground truth: 2\nsolution: 1+1\n#### 2" in said


def test_a_random_subset(mixed, tmp_path, capsys):
    out = tmp_path / "out" / "some.parquet"
    assert subset(["--data", mixed, "--method", "random", "--size", "6", "--out", str(out), "--seed", "3"]) == 0
    assert "6 of 15 questions (40.0%)" in capsys.readouterr().out
    chosen, whole = read(str(out)).questions, {repr(q.prompt): q for q in read(mixed).questions}
    assert len(chosen) == 6
    for question in chosen:
        same = whole[repr(question.prompt)]
        assert (question.ground_truth, question.source, question.repeats) == (
            same.ground_truth,
            same.source,
            same.repeats,
        )


def test_a_kmeans_subset(mixed, model, tmp_path, capsys):
    out = tmp_path / "some.parquet"
    args = ["--data", mixed, "--method", "kmeans", "--model", model, "--clusters", "2", "--out", str(out)]
    assert subset([*args, "--size", "12"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"1 +12 +12 +80.0%", said)
    assert "12 of 15 questions (80.0%)" in said
    assert {q.source for q in read(str(out)).questions} == {"a"}
    assert subset([*args, "--size", "13", "--overwrite"]) == 0
    assert re.search(r"2 +3 +1 +6.7%", capsys.readouterr().out)


def test_bad_rows_are_counted(jsonl, tmp_path, capsys):
    path = jsonl([{"question": "1?", "answer": "1"}, {"question": "2?"}])
    args = ["--data", path, "--method", "random", "--size", "1", "--out", str(tmp_path / "o.parquet")]
    with pytest.raises(ValueError, match="line 2: column 'answer' is missing"):
        subset(args)
    assert subset([*args, "--skip-bad"]) == 0
    assert "1 bad rows skipped (the first: questions.jsonl, line 2: column 'answer'" in capsys.readouterr().out


def test_the_input_is_not_overwritten(mixed, tmp_path):
    before = (tmp_path / "mixed.parquet").read_bytes()
    for data, out in ((mixed, mixed), (mixed, f"{tmp_path}/../{tmp_path.name}/mixed.parquet"), (str(tmp_path), mixed)):
        with pytest.raises(ValueError, match="is the input"):
            subset(["--data", data, "--method", "random", "--size", "5", "--out", out])
    assert (tmp_path / "mixed.parquet").read_bytes() == before


def test_a_file_is_replaced_only_if_asked(mixed, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    out.write_text("mine")
    args = ["subset", "--data", mixed, "--method", "random", "--size", "5", "--out", str(out)]
    assert main(args) == 2
    assert capsys.readouterr().err.startswith(f"error: {out} exists: ")
    assert out.read_text() == "mine"
    assert main([*args, "--overwrite"]) == 0
    assert len(read(str(out)).questions) == 5


def test_text_that_the_tokenizer_does_not_know(jsonl, model, tmp_path, capsys):
    path = jsonl([{"question": "ab", "answer": "1"}, {"question": "What?", "answer": "2"}])
    args = ["--data", path, "--method", "kmeans", "--model", model, "--clusters", "1", "--size", "1"]
    assert main(["subset", *args, "--out", str(tmp_path / "o.parquet")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: questions.jsonl, line 2: ")


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ("kmeans --size 3", "--method kmeans .*--model"),
        ("random --size 16", "size .*1 and 15"),
        ("kmeans --size 3 --model {}", "clusters .*1 and 15"),
        ("kmeans --size 3 --model nowhere", "nowhere"),
    ],
)
def test_a_refusal_names_the_flag(mixed, model, tmp_path, flags, names):
    with pytest.raises(ValueError, match=names):
        subset(["--data", mixed, "--out", str(tmp_path / "o.parquet"), "--method", *flags.format(model).split()])
    assert not list(tmp_path.glob("o.parquet"))
