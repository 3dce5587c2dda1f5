"""A run that reads a model besides its own goes on with the one that it began with, or says why it does not."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from llmtrain.policy.model import load, save
from llmtrain.settings.config import ModelConfig, TrainConfig
from llmtrain.training.trainer import Trainer
from llmtrain.training.warmup import start_model


def trained(config: TrainConfig, folder: Path) -> Trainer:
    """A run of a step, in a folder of its own, from a model that is built there."""
    model = ModelConfig(
        hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, lora_rank=config.model.lora_rank
    )
    sft, eval = replace(config.sft, steps=1), replace(config.eval, every=0)
    config = replace(config, out=str(folder / "run"), steps=1, model=model, sft=sft, eval=eval)
    trainer = Trainer(config, start_model(config))
    trainer.run()
    return trainer


def resumed(trainer: Trainer) -> Trainer:
    return Trainer(replace(trainer.config, steps=2), trainer.config.out, resume=True)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("base", {"model": ModelConfig(lora_rank=2)}),
        ("reference", {"controller": "kl_ref"}),
        ("reference", {"controller": "thermostat", "controller_args": {"mode": "anchor"}}),
        ("reference", {"advantage": "prime"}),
    ],
)
def test_a_resumed_run_reads_the_model_it_began_with(small, tmp_path, monkeypatch, name, changes):
    """From another folder, where a new run would build a model of its own."""
    monkeypatch.chdir(tmp_path)
    trainer = trained(replace(small, **changes), tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = resumed(trainer)
    assert again.bases == trainer.bases
    assert Path(again.bases[name]["folder"]).parent == tmp_path / "runs" / ".cache"
    assert not any(Path().iterdir())


def test_a_reference_in_a_folder_of_its_own(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small.model.path, "reference")
    config = replace(small, out="run", controller="kl_ref", model=replace(small.model, ref_path="reference"))
    bases = Trainer(config, small.model.path).bases
    assert bases["reference"]["folder"] == str(tmp_path / "reference")
    assert bases.keys() == {"reference"}


def test_other_weights_are_refused_and_so_are_none(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = trained(replace(small, model=ModelConfig(lora_rank=2)), tmp_path)
    folder = trainer.bases["base"]["folder"]
    model, tokenizer = load(folder)
    with torch.no_grad():
        model.get_input_embeddings().weight[0, 0] += 1
    save(model, tokenizer, folder)
    with pytest.raises(ValueError, match=rf"^{folder}, .*other weights"):
        resumed(trainer)
    shutil.rmtree(folder)
    with pytest.raises(ValueError, match=rf"^{folder}, .*gone"):
        resumed(trainer)


def test_a_run_that_reads_no_other_model_goes_on_without_its_start(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = trained(replace(small, model=ModelConfig()), tmp_path)
    shutil.rmtree(tmp_path / "runs")
    assert resumed(trainer).bases == {}
    assert not (tmp_path / "runs").exists()
