"""A warmed-up model is taken again only where nothing it was made of has changed."""

from dataclasses import replace

import pytest

from llmtrain.config import DataConfig, TrainConfig
from llmtrain.warmup import cached_path


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


def test_so_is_how_it_is_trained_and_not_what_comes_after(config):
    assert cached_path(replace(config, sft=replace(config.sft, steps=7))) != cached_path(config)
    assert cached_path(replace(config, steps=7)) == cached_path(config)
