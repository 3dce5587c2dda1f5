"""Models: a tiny Qwen2 that trains on a laptop CPU, and loading and saving of any causal language model."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from zipfile import is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.utils.logging import disable_progress_bar

from ..process.text import one_line
from .engine import Engine
from .lora import whole_weights
from .own_code import CodeRefusedError, refusing_code
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
    check_files(Path(path))
    disable_progress_bar()  # it would break up the run's own progress bar
    with said_in_a_line(path), refusing_code(path):
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
    keep_ids_alone(model)
    if device == "cpu":
        for weight in model.parameters():
            if weight.data_ptr() % ALIGNMENT:
                weight.data = weight.data.clone()
    else:
        torch.backends.cuda.enable_cudnn_sdp(False)
    return model, tokenizer


WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "model*.bin")
"""Files of weights."""
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


def check_files(folder: Path) -> None:
    """Raise ValueError if a file of a model folder is missing, cut off or only points at the file itself."""
    if not folder.is_dir():
        raise ValueError(f"model folder {folder} does not exist")
    found = sorted({file for pattern in WEIGHTS for file in folder.glob(pattern)})
    if (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file():
        raise ValueError(f"model folder {folder} is an adapter alone: merge it into its base model first")
    if not found:
        raise ValueError(f"model folder {folder} has no weights: there is no *.safetensors in it")
    for file in (folder / "config.json", *found, *filter(Path.is_file, (folder / name for name in INDEXES))):
        if points_elsewhere(file):
            raise ValueError(f"model folder {folder}: {file.name} is a pointer of Git LFS: fetch it with git lfs pull")
        if not is_whole(file):
            raise ValueError(f"model folder {folder} is damaged: {file.name} is missing or cut off")
    kept = json.loads((folder / "config.json").read_bytes())
    if not isinstance(kept, dict):
        raise ValueError(f"model folder {folder}: config.json is no object of settings")
    if quantized := kept.get("quantization_config"):
        how = quantized.get("quant_method", "") if isinstance(quantized, dict) else ""
        raise ValueError(
            f"model folder {folder} is quantized ({how or 'quantization_config'}): train the whole weights"
        )
    for index in filter(Path.is_file, (folder / name for name in INDEXES)):
        shards = set(json.loads(index.read_bytes()).get("weight_map", {}).values())
        if lost := sorted(name for name in shards if not (folder / name).is_file()):
            raise ValueError(f"model folder {folder} is damaged: {lost[0]} is missing, which {index.name} names")


def points_elsewhere(file: Path) -> bool:
    """Return True for a file that Git LFS puts in the place of a large one."""
    if not file.is_file() or file.stat().st_size > 1024:
        return False
    return file.read_bytes().startswith(b"version https://git-lfs")


@contextmanager
def said_in_a_line(path: str | Path) -> Iterator[None]:
    """Raise what a library makes of a model folder as a ValueError of one line; a lack of memory stays what it is."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError, CodeRefusedError):
        raise
    except Exception as error:
        kind = "" if type(error) in (ValueError, OSError) else f"{type(error).__name__}: "
        raise ValueError(f"model folder {path} cannot be read: {kind}{one_line(error)}") from error


def keep_ids_alone(model: PreTrainedModel) -> None:
    """Drop settings of sampling that contradict each other, with which no checkpoint could be written."""
    try:
        model.generation_config.validate(strict=True)
    except (AttributeError, ValueError):
        known = model.generation_config.to_dict() if model.generation_config else {}
        ids = {name: value for name, value in known.items() if name.endswith("_token_id")}
        model.generation_config = GenerationConfig(**ids)


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
