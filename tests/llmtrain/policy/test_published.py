"""Weights are sent as a checkpoint has them: what `save_pretrained` writes is the truth."""

import pytest
import torch
from benchmarks.models import build
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from llmtrain.policy.lora import whole_weights
from llmtrain.policy.published import published

FAMILIES = ["qwen2", "mixtral", "qwen3_moe", "gpt_oss", "minimax_m2", "gemma3", "phi3"]
"""Dense; experts under another name, or the same; in one weight; with a buffer; composite; with joined weights."""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("loaded", [False, True])
def test_weights_are_those_of_a_checkpoint(family, loaded, tmp_path):
    model = build(family)
    model.save_pretrained(tmp_path)
    if loaded:
        model = AutoModelForCausalLM.from_pretrained(tmp_path)
    written, found = load_file(tmp_path / "model.safetensors"), dict(published(model, whole_weights(model)))
    assert found.keys() == written.keys()
    assert all(torch.equal(found[name], written[name]) for name in written)


def test_one_layer_is_read_at_a_time():
    """So no rank holds more than one layer of gathered weights."""
    model, read = build("mixtral"), []

    def reading():
        for name, weight in whole_weights(model):
            read.append(name)
            yield name, weight

    names = (name for name, _ in published(model, reading()))
    assert "layers.0." in next(name for name in names if ".layers." in name)
    assert {name.split(".")[2] for name in read if ".layers." in name} == {"0", "1"}  # the first weight of the next
    assert len([name for name in read if ".layers.1." in name]) == 1
