"""A model folder that is not whole is refused in a line that names what is wrong."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from llmtrain.policy.model import build_tiny, load, save
from llmtrain.policy.tokenizer import build_char_tokenizer

Q = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture
def folder(tmp_path):
    tokenizer = build_char_tokenizer("0123")
    model = build_tiny(len(tokenizer), hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16)
    save(model, tokenizer, tmp_path)
    load(tmp_path)
    return tmp_path


def changed(folder, change):
    file = folder / "model.safetensors"
    weights = {name: weight.clone() for name, weight in load_file(file).items()}
    change(weights)
    save_file(weights, file, {"format": "pt"})
    return folder


def nan(weights):
    weights[Q][0, 0] = torch.nan


def infinite(weights):
    weights["model.norm.weight"][3] = -torch.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop(Q), f"has no weights for {Q}$"),
        (lambda weights: weights.update(more=torch.ones(2)), "has weights that its class does not have: more$"),
        (lambda weights: weights.update({Q: torch.ones(2, 16)}), f"has weights of another shape: {Q}$"),
        (nan, f"has weights that are not finite: {Q}$"),
        (infinite, "has weights that are not finite: model.norm.weight$"),
        (
            lambda weights: [weights.pop(name) for name in list(weights) if "mlp" in name or "self_attn" in name],
            r"has no weights for model.layers.0.mlp.down_proj.weight, .* and \d+ more$",
        ),
    ],
)
def test_weights_that_are_not_whole_are_named(folder, change, message):
    with pytest.raises(ValueError, match=message) as refused:
        load(changed(folder, change))
    assert str(folder) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_tokenizer_of_another_model_is_refused(folder):
    build_char_tokenizer("".join(map(chr, range(65, 100)))).save_pretrained(folder)
    with pytest.raises(ValueError, match="a tokenizer with ids up to 36, but a vocabulary of 6"):
        load(folder)


def test_a_vocabulary_may_have_room(folder, tmp_path):
    tokenizer = build_char_tokenizer("0123")
    save(build_tiny(64, hidden=16, layers=1, heads=2, kv_heads=2, intermediate=16), tokenizer, tmp_path / "padded")
    load(tmp_path / "padded")
    assert json.loads((tmp_path / "padded" / "config.json").read_text())["vocab_size"] == 64
