"""What makes an evaluation another one, so that its responses are not taken for those of the first."""

from dataclasses import replace

import pytest
import torch
from evaluated import SAMPLING, TOKENIZER, Contains, ids, questions, small_model, subject

from llmtrain.evaluation.benchmark import Benchmark
from llmtrain.evaluation.evaluation import Evaluation


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


def in_bfloat16():
    return replace(subject(), model=small_model().to(torch.bfloat16))


def on_another_device():
    return replace(subject(), model=small_model().to("meta"))


def with_a_stop_token():
    return replace(subject(), stop_token_ids=(2, 3))


def with_another_end():
    model = small_model()
    model.generation_config.eos_token_id = [1, len(TOKENIZER) - 1]
    return replace(subject(), model=model)


@pytest.mark.parametrize(
    ("key", "made"),
    [
        ("dtype", in_bfloat16),
        ("device", on_another_device),
        ("stop_token_ids", with_a_stop_token),
        ("stop_token_ids", with_another_end),
    ],
)
def test_another_subject_is_refused(evaluation, key, made):
    evaluation._claim(overwrite=False)
    evaluation._claim(overwrite=False)
    with pytest.raises(ValueError, match=f"other settings \\('{key}' differs\\)"):
        replace(evaluation, subject=made())._claim(overwrite=False)


def test_another_time_limit_is_refused(evaluation):
    evaluation._claim(overwrite=False)
    with pytest.raises(ValueError, match="'timeout' differs"):
        replace(evaluation, timeout=1.0)._claim(overwrite=False)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors", "tokenizer.json"])
def test_another_model_in_the_folder_is_refused(evaluation, name):
    evaluation._claim(overwrite=False)
    (evaluation.path / name).write_bytes(b"others, and more of them")
    with pytest.raises(ValueError, match="'files' differs"):
        evaluation._claim(overwrite=False)
