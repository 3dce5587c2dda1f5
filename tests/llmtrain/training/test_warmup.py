"""A warmed-up model is taken again only where nothing it was made of has changed."""

import json
from dataclasses import replace

import pytest
from full_disk import no_file_over

from llmtrain.settings.config import DataConfig, ModelConfig, SFTConfig, TrainConfig
from llmtrain.training.warmup import build_and_warm_up, cached_path, start_model


@pytest.fixture
def config(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("train.jsonl", "folder/train.jsonl", "template.jinja"):
        (tmp_path / name).write_text("{}\n")
    files = (str(tmp_path / "train.jsonl"), str(tmp_path / "folder"))
    return TrainConfig(data=DataConfig(train_files=files, chat_template=str(tmp_path / "template.jinja")))


@pytest.mark.parametrize("name", ["train.jsonl", "folder/train.jsonl", "template.jinja", "folder/more.jsonl"])
def test_what_files_hold_is_part_of_the_name(config, tmp_path, name):
    before = cached_path(config)
    assert cached_path(config) == before
    (tmp_path / name).write_text('{"other": 1}\n')
    assert cached_path(config) != before


def test_so_is_the_longest_prompt(config):
    other = replace(config, data=replace(config.data, max_prompt_length=7))
    assert cached_path(other) != cached_path(config)


def test_so_is_how_it_is_trained_and_not_what_comes_after(config):
    assert cached_path(replace(config, sft=replace(config.sft, steps=7))) != cached_path(config)
    assert cached_path(replace(config, steps=7)) == cached_path(config)
    flat = replace(config.sft, gem_beta=0.5)
    assert cached_path(replace(config, sft=flat)) == cached_path(config)  # without GEM
    assert cached_path(replace(config, sft=replace(flat, loss="gem"))) != cached_path(config)


@pytest.fixture
def warming(tmp_path):
    """A warm-up on 4 questions, of which one is long, and of another the solution."""

    def of(*rows):
        rows = [{"question": question, "answer": 1, "solution": solution} for question, solution in rows]
        (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return TrainConfig(
            data=DataConfig(train_files=(str(tmp_path / "sums.jsonl"),), max_prompt_length=80),
            model=ModelConfig(
                hidden_size=16,
                num_layers=1,
                num_heads=2,
                intermediate_size=16,
                max_position_embeddings=100,
                vocab_size=260,
            ),
            sft=SFTConfig(steps=1, batch_size=2),
        )

    return of


def test_examples_that_are_too_long_are_left_out_and_told(warming, tmp_path, capsys):
    config = warming(("1+0?", "1"), ("0+1?", "1"), ("?" * 90, "1"), ("1+1-1?", "1" * 100))
    assert len(build_and_warm_up(config, tmp_path / "model")) == 1
    prompts, solutions = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warm-up: ")]
    assert "1 of 4" in prompts
    assert "data.max_prompt_length 80" in prompts
    assert "1 of 3" in solutions
    assert "100 tokens" in solutions


def test_examples_of_which_none_is_left(warming, tmp_path):
    for row, names in (
        (("?" * 90, "1"), r"1 of 1 .*data\.max_prompt_length 80"),
        (("1?", "1" * 100), r"\d+ tokens .*model\.max_position_embeddings 100"),
    ):
        with pytest.raises(ValueError, match=names):
            build_and_warm_up(warming(row), tmp_path / "model")


def test_a_full_disk_is_told(warming, tmp_path):
    with no_file_over(2**14), pytest.raises(ValueError, match=rf"^{tmp_path}: File too large$"):
        build_and_warm_up(warming(("1+0?", "1")), tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["sums.jsonl"]


def test_a_verifier_that_cannot_be_called_costs_no_warm_up(warming, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def bad(response):\n    return True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config = warming(("1 + 1?", "1 + 1 is 2, so the answer is 2"))
    config = replace(config, data=replace(config.data, verifier="mine:bad"))
    with pytest.raises(ValueError, match=r"verifier .*TypeError"):
        start_model(config)
    assert not cached_path(config).exists()
