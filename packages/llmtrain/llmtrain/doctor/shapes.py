"""Models of known shapes with random weights, to test a machine without a download."""

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen2Config

from ..policy.model import save
from ..policy.tokenizer import build_char_tokenizer
from ..verifiers.countdown import ALPHABET


@dataclass(frozen=True)
class Shape:
    """Sizes of a Qwen2 model."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocab: int
    tied: bool = True


SMALL = Shape("Qwen2.5-0.5B", 896, 24, 14, 2, 4864, 151_936)
LARGE = Shape("Qwen2.5-7B", 3584, 28, 28, 4, 18_944, 152_064, tied=False)
MIDDLE = Shape("Qwen2.5-1.5B", 1536, 28, 12, 2, 8960, 151_936)
SMOL = Shape("SmolLM2-135M", 576, 30, 9, 3, 1536, 49_152)
TINY = Shape("tiny", 128, 2, 4, 4, 128, 512)
"""Shape used instead of the others on a CPU."""


def build(shape: Shape, folder: Path, device: str, dtype: torch.dtype, positions: int = 4096) -> Path:
    """Write a model of this shape with random weights, unless its config.json exists; return the folder.

    It has the tokenizer of the countdown task. Its responses are noise without a stop token, so all have the maximum
    length, which makes predictions precise.
    """
    if (folder / "config.json").is_file():
        return folder
    save(make(shape, device, dtype, positions), build_char_tokenizer(ALPHABET), folder)
    return folder


def make(shape: Shape, device: str, dtype: torch.dtype, positions: int = 4096) -> PreTrainedModel:
    """Return a model of this shape with random weights."""
    config = Qwen2Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=positions,
        tie_word_embeddings=shape.tied,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(config, dtype=dtype)
