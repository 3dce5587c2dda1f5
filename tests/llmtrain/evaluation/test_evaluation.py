"""Settings that make an evaluation a different one, so that it does not reuse responses."""

import json
from dataclasses import replace

import pytest
import torch
from evaluated import SAMPLING, TOKENIZER, Contains, ids, questions, small_model, subject

from llmtrain.evaluation.benchmark import Benchmark
from llmtrain.evaluation.evaluation import BENCHMARKS, Evaluation


@pytest.fixture
def evaluation(tmp_path):
    asked = questions(2)
    (tmp_path / "pytorch_model.bin").write_bytes(b"weights")
    return Evaluation(
        subject=subject(),
        path=tmp_path,
        benchmarks=[Benchmark("a", asked, ids(asked), SAMPLING)],
        verifier="contains",
        start_verifier=Contains,
        timeout=5.0,
        out=tmp_path / "out",
    )


def of(*sources):
    asked = questions(2)
    return [Benchmark(source, asked, ids(asked), SAMPLING) for source in sources]


def refused(other, key):
    with pytest.raises(ValueError, match=f"'{key}' differs"):
        other._claim(overwrite=False)


def with_another_end():
    model = small_model()
    model.generation_config.eos_token_id = [1, len(TOKENIZER) - 1]
    return {"subject": replace(subject(), model=model)}


@pytest.mark.parametrize(
    ("key", "made"),
    [
        ("dtype", lambda: {"subject": replace(subject(), model=small_model().to(torch.bfloat16))}),
        ("device", lambda: {"subject": replace(subject(), model=small_model().to("meta"))}),
        ("stop_token_ids", lambda: {"subject": replace(subject(), stop_token_ids=(2, 3))}),
        ("stop_token_ids", with_another_end),
        ("timeout", lambda: {"timeout": 1.0}),
    ],
)
def test_another_setting_is_refused(evaluation, key, made):
    evaluation._claim(overwrite=False)
    evaluation._claim(overwrite=False)
    refused(replace(evaluation, **made()), key)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors", "tokenizer.json"])
def test_another_model_in_the_folder_is_refused(evaluation, name):
    evaluation._claim(overwrite=False)
    (evaluation.path / name).write_bytes(b"others, and more of them")
    refused(evaluation, "files")


@pytest.mark.parametrize("source", ["seed", "model", "files", "verifier", "batch_size", BENCHMARKS])
def test_no_benchmark_hides_a_setting(evaluation, source):
    mine = replace(evaluation, benchmarks=of(source))
    mine._claim(overwrite=False)
    mine._claim(overwrite=False)
    refused(replace(mine, seed=1), "seed")
    other = [replace(one, questions=questions(2, "b")[::-1]) for one in mine.benchmarks]
    refused(replace(mine, benchmarks=other), source)


def test_benchmarks_come_in_their_order(evaluation):
    replace(evaluation, benchmarks=of("a", "b"))._claim(overwrite=False)
    for sources, key in (("ba", "order of benchmarks"), ("a", "b"), ("abc", "c")):
        refused(replace(evaluation, benchmarks=of(*sources)), key)


def test_an_evaluation_of_before_benchmarks_had_a_key_of_their_own_goes_on(evaluation):
    now = evaluation.identity()
    flat = {key: value for key, value in now.items() if key != BENCHMARKS} | now[BENCHMARKS]
    evaluation.out.mkdir()
    mark = evaluation.out / "evaluation.json"
    mark.write_text(json.dumps(flat))
    refused(replace(evaluation, seed=1), "seed")
    refused(replace(evaluation, benchmarks=of("b")), "b")
    evaluation._claim(overwrite=False)
    assert json.loads(mark.read_text()) == now
    mark.write_text(json.dumps(flat | {"seed": now[BENCHMARKS]["a"]}))
    refused(evaluation, "seed")


def test_responses_of_something_else_are_left_alone(evaluation):
    evaluation.out.mkdir()
    responses = evaluation.out / "responses.jsonl"
    responses.write_text("mine\n")
    with pytest.raises(ValueError, match=r"responses\.jsonl .* missing: .*--overwrite$"):
        evaluation.run()
    assert responses.read_text() == "mine\n"
    evaluation._claim(overwrite=True)
    assert [path.name for path in evaluation.out.iterdir()] == ["evaluation.json"]


@pytest.mark.parametrize("text", ["", '{"model": ', "[1]", "null", '{"benchmarks": 1}'])
def test_a_torn_identity_is_named(evaluation, text):
    evaluation.out.mkdir()
    (evaluation.out / "evaluation.json").write_text(text)
    with pytest.raises(ValueError, match=r"out/evaluation\.json .*--overwrite$"):
        evaluation._claim(overwrite=False)
    evaluation._claim(overwrite=True)
    evaluation._claim(overwrite=False)


def test_an_identity_is_written_whole_or_not_at_all(evaluation, monkeypatch):
    evaluation._claim(overwrite=False)
    before = (evaluation.out / "evaluation.json").read_bytes()

    def fails(*_):
        raise OSError("no space")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="no space"):
        evaluation._claim(overwrite=False)
    assert (evaluation.out / "evaluation.json").read_bytes() == before
