"""Models: a tiny Qwen2 that trains on a laptop CPU, and loading and saving of any causal language model."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from zipfile import is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.utils.logging import disable_progress_bar

from .engine import Engine
from .lora import whole_weights
from .own_code import refusing_code
from .tokenizer import load_tokenizer
from .whole_model import require_whole

ALIGNMENT = 64
"""Alignment of tensors that torch allocates on a CPU (bytes)."""


def build_tiny(
    vocab_size: int,
    *,
    hidden: int = 128,
    layers: int = 4,
    heads: int = 4,
    kv_heads: int = 4,
    intermediate: int = 384,
    max_positions: int = 256,
    pad_token_id: int = 0,
    eos_token_id: int = 1,
    seed: int = 0,
) -> Qwen2ForCausalLM:
    """Return a Qwen2 in float32 with random weights (0.86M parameters by default); does not change the global RNG.

    Raises:
        ValueError: if `hidden` is not a multiple of `heads`, or `heads` not a multiple of `kv_heads`.
    """
    if hidden % heads or heads % kv_heads:
        raise ValueError(f"hidden {hidden} must be a multiple of heads {heads}, and heads of kv_heads {kv_heads}")
    config = Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=intermediate,
        max_position_embeddings=max_positions,
        tie_word_embeddings=True,
        pad_token_id=pad_token_id,
        eos_token_id=eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    return cast(Qwen2ForCausalLM, model)


def load(
    path: str | Path, *, dtype: torch.dtype = torch.float32, device: str = "cpu", trust_remote_code: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return model and tokenizer from a folder. Downloads nothing; weights stored in `dtype` are memory-mapped.

    device: device that will run the model. On a CPU, rounding depends on the alignment of a weight in memory, so
    weights that are mapped at an unaligned address are copied. Otherwise a run's first model, written by other
    software, and its checkpoints would be rounded differently. On a GPU torch's attention is told not to use cuDNN,
    which prepares each new shape for tens of milliseconds, and sequences have many lengths.
    trust_remote_code: run the Python code of a folder that brings its own model or tokenizer class.

    Raises:
        ValueError: if the folder does not exist, has no weights or no tokenizer, or if a file is missing or cut off;
            if weights are missing, unexpected or not finite, or the tokenizer has ids beyond the vocabulary; if the
            folder needs its own code and that is not trusted.
    """
    if not Path(path).is_dir():
        raise ValueError(f"model folder {path} does not exist")
    if not any(any(Path(path).glob(pattern)) for pattern in ("*.safetensors", "*.bin")):
        raise ValueError(f"model folder {path} has no weights: there is no *.safetensors in it")
    files = [Path(path) / "config.json", *sorted(Path(path).glob("*.safetensors"))]
    if damaged := [file.name for file in files if not is_whole(file)]:
        raise ValueError(f"model folder {path} is damaged: {damaged[0]} is missing or cut off")
    disable_progress_bar()  # it would break up the run's own progress bar
    with refusing_code(path):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below
        )
    model, loading = cast(tuple[PreTrainedModel, dict[str, Any]], loaded)
    tokenizer = load_tokenizer(path, trust_remote_code)
    require_whole(path, model, tokenizer, loading)
    if device == "cpu":
        for weight in model.parameters():
            if weight.data_ptr() % ALIGNMENT:
                weight.data = weight.data.clone()
    else:
        torch.backends.cuda.enable_cudnn_sdp(False)
    return model, tokenizer


def is_whole(path: Path) -> bool:
    """Return True if a .pt, .safetensors or .json file exists and is not truncated; True for any other file."""
    try:
        if path.suffix == ".pt":
            return is_zipfile(path)
        if path.suffix == ".json":
            json.loads(path.read_bytes())
        if path.suffix == ".safetensors":
            with safe_open(path, "pt"):
                pass
    except (OSError, ValueError, SafetensorError):
        return False
    return True


def save(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, path: str | Path, engine: Engine | None = None
) -> None:
    """Write weights, configuration and tokenizer in the form that `load` and AutoModelForCausalLM read.

    engine: engine that splits the model over ranks; all ranks call this function, rank 0 writes.
    """
    disable_progress_bar()
    rank, weights = engine.ranks.rank if engine else 0, dict[str, Tensor]()
    for name, weight in whole_weights(model, engine.whole) if engine else whole_weights(model):
        if rank == 0:
            weights[name] = weight.cpu()
    if rank == 0:
        if not torch.cuda.is_available():
            os.environ.setdefault("DS_ACCELERATOR", "cpu")  # accelerate imports DeepSpeed, which warns if it is unset
        model.save_pretrained(path, state_dict=weights | dict(kept_buffers(model)))
        tokenizer.save_pretrained(path)
        mode = (Path(path) / "config.json").stat().st_mode
        for file in Path(path).glob("*.safetensors"):
            file.chmod(mode)  # safetensors 0.8 creates files that only their owner can read


def kept_buffers(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Return the buffers that are saved with the weights, as pairs of name and tensor."""
    state = model.state_dict()
    return ((name, buffer) for name, buffer in model.named_buffers() if name in state)
