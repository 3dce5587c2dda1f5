"""Commands that ask a model: subset by pass rate, and the entropy before training."""

import json

import numpy as np
import pytest

from entrostat.settings.commandline import one_line_errors
from llmtrain.commands.start_entropy import main as start_entropy
from llmtrain.commands.start_entropy import token_mean
from llmtrain.commands.subset import main as subset
from llmtrain.data import read
from llmtrain.policy.model import build_tiny, save
from llmtrain.policy.tokenizer import build_bpe_tokenizer

ALWAYS, NEVER = "^", "no such text"
SHORT = ["--verifier", "regex", "--max-new-tokens", "4", "--max-prompt-length", "100"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny"
    tokenizer = build_bpe_tokenizer(["What is 1 + 2? The answer is \\boxed{3}."], 300)
    save(build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), tokenizer, path)
    return str(path)


@pytest.fixture
def file(jsonl):
    truths = [ALWAYS, NEVER, ALWAYS, NEVER]
    rows = [{"question": f"What is {i}?", "answer": truth} for i, truth in enumerate(truths)]
    return jsonl([*rows, {"question": "and so on " * 200, "answer": ALWAYS}])


def test_questions_within_a_pass_rate_are_written(model, file, tmp_path, capsys):
    out = tmp_path / "some.parquet"
    command = ["--method", "pass-rate", "--model", model, "--data", file, "--out", str(out), *SHORT, "--samples", "2"]
    assert subset([*command, "--low", "0.5", "--high", "1"]) == 0
    told = capsys.readouterr().out
    assert "skipped 1 questions" in told
    assert "0 of 2 correct: 2 questions\n1 of 2 correct: 0 questions\n2 of 2 correct: 2 questions\n" in told
    assert [q.text for q in read(str(out)).questions] == ["What is 0?", "What is 2?"]  # as in the file
    responses = tmp_path / "some-responses" / "responses.jsonl"
    before = responses.read_bytes()
    assert subset([*command, "--low", "0", "--high", "0"]) == 0  # other bounds need no other responses
    assert responses.read_bytes() == before
    assert [q.text for q in read(str(out)).questions] == ["What is 1?", "What is 3?"]
    assert subset([*command, "--low", "0", "--high", "1", "--size", "3"]) == 0
    assert len(read(str(out)).questions) == 3


@pytest.mark.parametrize(
    ("method", "flags", "names"),
    [
        ("pass-rate", [], "--model"),
        ("random", [], "--size"),
        ("pass-rate", ["--model", "x", "--verifier", "math a=python"], "--keep"),
        ("pass-rate", ["--model", "x", "--low", "0.5", "--high", "0.4"], "--low 0.5 and --high 0.4"),
        ("pass-rate", ["--model", "no"], "no is not a model folder"),
    ],
)
def test_subsets_that_cannot_be(method, flags, names, file, tmp_path, capsys):
    out = str(tmp_path / "some.parquet")
    assert one_line_errors(subset)(["--data", file, "--out", out, "--method", method, *flags]) == 2
    assert names in capsys.readouterr().err


def test_no_question_within_the_bounds(model, file, tmp_path, capsys):
    command = ["--method", "pass-rate", "--model", model, "--data", file, "--out", str(tmp_path / "some.parquet")]
    assert one_line_errors(subset)([*command, *SHORT, "--samples", "2", "--low", "0.4", "--high", "0.6"]) == 2
    assert "0.4 to 0.6" in capsys.readouterr().err


def test_the_start_entropy_is_that_of_the_responses(model, file, tmp_path, capsys):
    out = tmp_path / "start"
    assert start_entropy([model, "--data", file, "--out", str(out), *SHORT]) == 0
    told = capsys.readouterr().out
    lines = [json.loads(line) for line in (out / "responses.jsonl").read_text().splitlines()]
    mean = np.average([line["entropy"] for line in lines], weights=[line["tokens"] for line in lines])
    assert len(lines) == 4
    assert f"entropy before training: {mean:.4f} ±" in told
    assert told.endswith(f"as a target: --target {mean:.4f}\n")


def test_the_start_entropy_is_at_temperature_1(model, file, capsys):
    assert one_line_errors(start_entropy)([model, "--data", file, "--temperature", "0.6"]) == 2
    assert "samples at temperature 1 and top-p 1" in capsys.readouterr().err


def test_the_mean_and_its_error_by_hand():
    """Two prompts with 1 and 3 tokens, entropies 2 and 0.5 a token: mean 3.5/4; rest 1.125 and -1.125."""
    mean, error = token_mean(np.array([2.0, 1.5]), np.array([1.0, 3.0]))
    assert mean == pytest.approx(0.875)
    assert error == pytest.approx(np.sqrt(2 * 2 * 1.125**2) / 4)
    assert np.isnan(token_mean(np.array([2.0]), np.array([1.0]))[1])
